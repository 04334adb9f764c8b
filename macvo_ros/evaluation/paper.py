# Copyright 2026 macvo_ros contributors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.

"""The results the paper prints, so that a sequence of the paper can be shown beside them.

Every cell is t_rel / r_rel, metres and degrees a frame (paper, tables I to III of section IV and those of the appendix). A
star marks a method whose scale was aligned with the truth before measuring. "-" where the method failed or the paper has
no figure. The paper ran whole sequences; a clip of one is easier or harder than the whole.
"""
# ruff: noqa: E501

from __future__ import annotations

import math
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class PaperRow:
    """One method on one sequence: t_rel in metres and r_rel in degrees a frame, NaN where the paper has none."""

    method: str
    t_rel: float
    r_rel: float


EUROC = """
                         MH01         MH02         MH03         MH04         MH05         V101         V102         V103         V201         V202         V203         Avg
ORB-SLAM 3, stereo       .0035/.0450  .0036/.0495  .0058/.0603  .0061/.0501  .0059/.0526  .0049/.0888  .0096/.1757  .0137/.2669  .0064/.1615  .0090/.1528  .033/.9497   .0092/.1866
DROID-SLAM, stereo*      .0012/.0159  .0012/.0169  .0034/.2656  .0031/.0224  .0025/.0193  .0024/.0314  .0026/.0417  .0036/.0642  .0012/.0289  .0017/.0399  .0034/.1033  .0024/.0590
MASt3R-SLAM, mono*       .0143/.5493  .0138/.5493  .0493/.8890  .0274/.8890  .0254/.5808  .0130/.5808  .0354/1.3178 .0383/1.3178 .0117/.6818  .0334/.6818  .0430/2.3306 .0277/1.0472
TartanVO, mono*          .0121/.0560  .0172/.0621  .0302/.2791  .0213/.0681  .0193/.0604  .0124/.0756  .0251/.1244  .0263/.1552  .0065/.0920  .0171/.1251  .0303/.2986  .0198/.1270
TartanVO, stereo         .0277/.5122  .0289/.5037  .0514/.6635  .0501/.5400  .0464/.4797  .0224/.5322  .0394/1.0420 .0351/1.3127 .0195/.4684  .0361/1.1607 .0473/1.9657 .0368/.8346
iSLAM-VO, stereo         .0042/.0560  .0041/.0620  .0076/.2789  .0082/.0682  .0070/.0603  .0041/.0756  .0066/.1241  .0088/.1554  .004/.0920   .0078/.1252  .0151/.2984  .0071/.1269
DPVO, mono*              .0015/.0207  .0014/.0212  .0028/.0273  .0029/.0264  .0028/.0243  .0026/.0405  .0041/.0496  .0033/.0662  .0016/.0342  .0022/.0493  .0045/.1205  .0027/.0437
MAC-VO, stereo           .0014/.0214  .0013/.0199  .0023/.0238  .0028/.0273  .0025/.0216  .0024/.0304  .0029/.0434  .0032/.058   .0012/.0289  .0018/.0406  .0049/.1284  .0024/.0403
"""

KITTI = """
                         00           01           02           03           04           05           06           07           08           09           10           Avg
ORB-SLAM 3, stereo       .0252/.0586  .0416/.0355  .0438/.0529  .027/.0425   .0274/.0322  .0161/.0416  .0228/.0338  .0155/.0385  .0271/.0455  .0208/.0444  .0166/.0515  .0258/.0434
DROID-SLAM, stereo*      .0198/.0538  .7112/.0406  .0250/.0445  .0182/.0385  .0255/.0296  .0153/.0353  .0199/.0296  .0746/.0734  .0275/.0381  .0214/.0378  .0309/.0715  .0900/.0448
MASt3R-SLAM, mono*       .8988/.7154  1.9316/.3442 1.0104/.5959 .5313/.2917  1.2266/.1124 -/-          1.2599/.1289 .3735/.3913  .7760/.6075  .8414/.5479  .6889/.4709  .9538/.4202
TartanVO, mono*          .2066/.1055  .6834/.0895  .1626/.1105  .1234/.0682  .1152/.0789  .1821/.0761  .2234/.0816  .2005/.0847  .1857/.0823  .1704/.1069  .1745/.0907  .2207/.0886
TartanVO, stereo         .0656/.1026  1.1408/.2455 .0905/.1197  .0477/.0953  .1747/.1158  .0637/.0821  .0923/.0968  .0700/.0931  .0721/.1063  .0990/.1077  .0679/.0969  .1804/.1147
iSLAM-VO, stereo         .0577/.1052  .2978/.0896  .0686/.1101  .0507/.0681  .1356/.0787  .0504/.0758  .0837/.0812  .0593/.0842  .0510/.082   .0660/.1064  .0449/.0905  .0878/.0883
DPVO, mono*              .4542/.0495  .0942/.0247  .4209/.0381  .0302/.0330  .0348/.0219  .2221/.0319  .2393/.0250  .1064/.0311  .3051/.0347  .1723/.0336  .0661/.0386  .1951/.0329
MAC-VO, stereo           .0192/.0654  .2663/.1670  .0223/.0715  .0187/.0504  .0206/.0473  .0142/.0466  .0187/.0456  .0194/.0507  .0254/.0509  .0182/.0567  .019/.0569   .0420/.0645
"""

TARTANAIR_HARD = """
                         H00          H01          H02          H03          H04          H05          H06          Avg
DROID-SLAM, stereo*      .0485/.1174  .0023/.0210  .0190/.0821  .0064/.0300  .0057/.0255  .1463/.2357  .0310/.0908  .0370/.0861
TartanVO, mono*          .1605/3.338  .2918/2.775  .2718/3.305  .2775/2.191  .2204/2.874  .1644/2.899  .2350/3.756  .2316/3.020
TartanVO, stereo         .1505/.4329  .0914/.7542  .0715/.3265  .0842/.4053  .0678/.6569  .0803/1.186  .0784/.9458  .0892/.6725
iSLAM-VO, stereo         .4235/2.630  .3070/3.018  .3252/2.189  .3622/2.435  .2576/2.899  .2574/3.755  .2099/3.145  .3061/2.867
DPVO, mono*              .4984/.4937  .1738/.7112  .0539/.2539  .3847/2.703  .0481/.1869  .1891/1.430  .3365/2.943  .2406/1.246
MAC-VO, stereo           .0085/.1018  .0344/.1450  .0048/.0628  .0150/.0778  .0092/.1414  .0048/.0552  .0217/.4160  .0141/.1429
"""

TARTANAIR_EASY = """
                         E00          E01          E02          E03          E04          E05          E06          Avg
ORB-SLAM 3, stereo       -/-          .1019/2.349  -/-          -/-          -/-          -/-          -/-          .1019/2.349
DROID-SLAM, stereo*      .0077/.0144  .0025/.0199  .0063/.0409  .0049/.0251  .0009/.0147  .0031/.0463  .0016/.0235  .0039/.0264
MASt3R-SLAM, mono*       .3268/2.892  .3124/2.921  -/-          -/-          .1872/2.948  -/-          .2018/3.033  .2570/.2948
TartanVO, mono*          .0532/.3237  .0937/.4750  .1066/.6048  .0756/.2230  .1114/.4032  .0862/.3185  .1373/.6620  .0949/.4300
TartanVO, stereo         .0505/.1334  .0322/.2078  .0237/.1105  .0303/.1417  .0173/.1681  .0279/.3828  .0218/.2329  .0291/.1967
iSLAM-VO, stereo         .0656/.2873  .0456/.3853  .0359/.2234  .0508/.2635  .0268/.3201  .0464/.6624  .0362/.4606  .0439/.3718
DPVO, mono*              .0113/.0187  .0047/.0249  .0099/.0475  .0603/.2064  .0044/.0177  .0511/.0665  .0189/.1543  .0229/.0766
MAC-VO, stereo           .0026/.0351  .0124/.1183  .0031/.0684  .0054/.0383  .0050/.0413  .0018/.0247  .0054/.1427  .0051/.0670
"""

ABLATION = """
                         H00        H01        H02        H03        H04        H05        H06        E00        E01        E02        E03        E04        E05        E06        Hard       Easy
w/o CovKP and CovOpt     .136/.380  .037/.277  .058/.206  .098/.456  .027/.248  .071/.926  .092/1.160 .116/.238  .049/.249  .045/.151  .058/.204  .018/.152  .035/.492  .044/.473  .0743/.5221 .0521/.2799
w/o CovOpt               .171/.350  .033/.244  .061/.248  .106/.507  .023/.176  .034/.449  .048/.669  .124/.219  .052/.254  .048/.187  .070/.275  .016/.132  .020/.278  .027/.313  .0679/.3776 .0511/.2367
w/o CovKP                .025/.099  .005/.042  .015/.076  .025/.247  .005/.059  .029/.629  .028/.491  .010/.048  .003/.031  .006/.039  .008/.058  .002/.025  .009/.189  .009/.174  .0188/.2347 .0066/.0808
DiagCov                  .128/.333  .016/.126  .038/.192  .066/.404  .014/.137  .023/.379  .038/.544  .069/.189  .025/.127  .025/.106  .037/.167  .009/.085  .012/.179  .017/.210  .0461/.3023 .0277/.1548
Scale Agnostic           .041/.173  .004/.042  .018/.098  .027/.253  .005/.060  .021/.500  .027/.498  .026/.073  .004/.033  .006/.027  .009/.067  .002/.029  .005/.148  .008/.136  .0204/.2321 .0086/.0764
Ours                     .008/.102  .034/.145  .005/.063  .015/.078  .009/.141  .005/.055  .020/.465  .003/.035  .012/.118  .003/.068  .005/.038  .005/.041  .002/.025  .005/.143  .0141/.1429 .0051/.0670
"""

KITTI_FOCAL = {**dict.fromkeys(("00", "01", "02"), 718.856), "03": 721.5377}  # pixels; all others 707.0912


def paper_sequence(name: str, fx: float) -> str | None:
    """The paper's name ("MH01", "00", "H03") of the sequence called `name`, or None if it is not one of the paper's.

    fx: pixels. KITTI folders carry nothing but a number, so the focal length has to agree as well.
    """
    text = name.lower()
    if "kitti" in text:
        found = re.search(r"\b(0\d|10)\b", text.split("kitti", 1)[1])
        if found and math.isclose(fx, KITTI_FOCAL.get(found[1], 707.0912), abs_tol=0.5):
            return found[1]
        return None
    found = re.search(r"(?:^|[^a-z])(mh_?0[1-5]|v[12]_?0[1-3])(?!\d)", text)
    if found and "euroc" in text:
        return found[1].replace("_", "").upper()
    found = re.search(r"(?:^|[^a-z])([he])0?(0[0-6])(?!\d)", text)
    if found and "tartanair" in text:
        return (found[1] + found[2]).upper()
    return None


def paper_rows(name: str, fx: float) -> list[PaperRow]:
    """What the paper reports on the sequence called `name`; empty if it is not one of the paper's."""
    sequence = paper_sequence(name, fx)
    return [] if sequence is None else _column((EUROC, KITTI, TARTANAIR_HARD, TARTANAIR_EASY), sequence)


def paper_ablation(name: str, fx: float) -> tuple[str, dict[str, PaperRow]]:
    """The paper's ablation on this sequence, or its mean over TartanAir v2 Hard where it has none: (title, row by variant)."""
    sequence = paper_sequence(name, fx)
    column = sequence if sequence is not None and sequence[0] in "HE" else "Hard"
    title = f"paper, {'TartanAir v2 Hard' if column == 'Hard' else column}"
    return title, {row.method: row for row in _column((ABLATION,), column)}


def _column(tables: tuple[str, ...], sequence: str) -> list[PaperRow]:
    rows = []
    for table in tables:
        header, *lines = table.strip("\n").splitlines()
        if sequence not in header.split():
            continue
        index = header.split().index(sequence)
        for line in lines:
            t_rel, r_rel = line[25:].split()[index].split("/")
            rows.append(PaperRow(line[:25].strip(), _number(t_rel), _number(r_rel)))
    return rows


def _number(cell: str) -> float:
    return math.nan if cell == "-" else float(cell)
