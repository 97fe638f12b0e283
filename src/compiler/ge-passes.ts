/**
 * Fusion passes of Huawei's GE by name: those that our regions stand for, and those that mean nothing here. A switch
 * that names one of the latter is a warning, not an error, so that switch files written for GE work. Rules name their
 * own counterparts (`gePass`). Names from GE's published configuration and pass reference.
 */

/** Passes that fuse what our partition fuses, and the kinds of region they stand for. */
export const gePassKinds: Readonly<Record<string, readonly string[]>> = {
  TbeEltwiseFusionPass: ["FusedElementwise"],
  AutomaticUbFusion: ["FusedElementwise"],
  TbeDynamicElemwiseBroadcast: ["FusedElementwise"],
  MatMulBiasAddFusionPass: ["MatMulAdd"],
  ATbeMatmulElemwiseFusionPass: ["MatMulRelu", "MatMulAddRelu"],
  TbeConvSigmoidMulQuant: ["ConvSigmoidMul"],
  ConvClipByValue: ["ConvClip"],
};

const graphFusions = `HostBNFusionPass FusedBatchnormFusionPass ABatchnormFusionPass SingleBatchNormFusion ConvScaleFusionPass
MatMulReshapeBiasAddFusionPass MatmulCastFusionPass ConvCastFusionPass CastReluCastFusionPass LayerNormONNXFusionPass
AddLayerNormFusionPass AddRmsNormFusionGraphPass RMSnormAdd GroupNormFusionPass GroupNormReluFusionPass AGroupNormSiluFusionPass
Conv2DAddGroupNorm SoftmaxFusionPass SoftmaxGradFusionPass LogSoftmaxGrad ZConfusionSoftmaxGrad TransposeReshapeFusionPass
ReshapeTransposeFusionPass PadDepthwiseConv2d PadV2Maxpool ASplitConv2dConcatPass ConvConcatFusionPass SplitConvConcatFusionPass
SplitConvFusionPass SameInputConv2dPass DepthwiseToConv2d ADepthwiseFusionPass ConvToFullyConnectionFusionPass GemmToMatmul
MatMulToMatmulV3 BatchMatMul2Mul Conv2dToConv2dV2 AReduceMean AReduceSum AReduceMax AReduceMin AReduceProd AReduceAll AReduceAny
AReduceSumFusionPass ConstToAttr ConstToAttrStridedSliceV2 ConstToAttrGatherV2 ConstToAttrReduceSum ConstToAttrResize TileConstToAttr
PackFusionPass UnpackFusionPass AddNFusionPass ConcatQuantFusionPass Conv2DQuantProcessFusionPass DWConv2DQuantProcessFusionPass
FCQuantProcessFusionPass MatmulV2QuantProcessFusionPass BatchMatmulV2QuantProcessFusionPass PoolQuantProcessFusionPass
V100RequantFusionPass V200RequantFusionPass V100NotRequantFusionPass V200NotRequantFusionPass FIXPIPEFUSIONPASS
FIXPIPEAPREQUANTFUSIONPASS FIXPIPEARELUQUANTFUSIONPASS CubeTransFixpipe FixPipeAbilityProcessPass RopeQuantKvcache
SwinTransformerLnQKV GLU AGlu GeGluV2 MoeInitRoutingQuant YoloxBoundingBoxDecode TransposeSigmoidMulAddPowConcat
CommonSubexpressionEliminationPass CastRemoveFusionPass COPYPass TransdataCastFusionPass RefreshInt64ToInt32FusionPass
StrideHoistingPass PermuteFusionPass DeleteNoConstFolding ClipFusionRule1 SquareSumV1 clip_by_norm_nodivsquaresum
LayerNormGradFusionRule MatMulUnsqueezeSqueeze LayerNormRemoveBroadcast MaxPoolFusion QuantBatchMatmulV3Transpose GatherToGatherV2`;

const bufferFusions = `TbeReduceElemwiseFusionPass TbeDynamicElemwiseReduce TbeMultiOutputFusionPass TbeEltwiseCast TbeElemwiseQuant
TbeEltwiseQuant TbeReadSelect EltwiseWriteSelect TbeBatchMatmulElementWise TbeFullyconnectionElemwiseDequantFusionPass
MatmulConfusiontransposeUbFusion BatchMatmulConfusiontransposeUbFusion MatmulReduceSumUbFusion MatmulDropOutDoMaskV3D
MatmulFastGelugradUbFusion MatmulGelugradUbFusion MatmulTransdata MatmulAtomicAdd TbeConvCommonRules0 TbeConvCommonRules2
TbeConvDequant TbeConvDequantVadd TbeConvDequantVaddRelu TbeConvDequantVaddReluQuant TbeConvDequantQuant TbeConvRequant
TbeConvDequantS16 TbeConv2DAddMulQuant TbePool2dQuant TbeAntiquantMaxpooling TbeDepthwiseConvDequant TbeConvDoubleIn
TbeConv2dAddClipMulDiv TbeConv2dAddRelu6MulMul TbeConv2DReluv2 TbeConvBnreduce TbeBnupdateEltwise TbeBnupdateEltwiseEltwise
TbeAippCommon TbeAippConv TbeAippConvReluMaxpooling TbeConvFixPipe TbeMatmulFixPipe TbeFixPipe TbeFillWindowCacheConvFixpipe`;

/** Passes with no counterpart here. */
export const foreignGePasses: readonly string[] = `${graphFusions} ${bufferFusions}`.split(/\s+/);
