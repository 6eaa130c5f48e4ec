"""The answers of reachd as type checkers see them. tests/e2e/test_python_types.py writes this file from api/openapi.yaml.

At run time an answer is an instance of its class, and nested objects are Documents. Members that an answer may lack are
not marked. Access to a missing member raises AttributeError, and get() of the dict returns None."""
from __future__ import annotations

from typing import Any, Dict, List, Optional

from reach.document import Answer, Document


class Identity(Document):
    uuid: str
    name: str
    serial: Optional[str]
    pci_bus_id: Optional[str]
    compute_capability: str
    sm_count: int
    memory_bytes: int
    l2_cache_bytes: Optional[int]
    l2_cache_bytes_reason: str
    driver_version: Optional[str]
    cuda_version: Optional[str]
    mig: bool
    mlopart: bool
    origin: str


class Error(Document):
    slug: str
    text: str
    next_step: str


class Gpu(Identity):
    index: int
    links: Dict[str, str]
    state: str
    fingerprint_id: Optional[str]
    fingerprint_taken_at: Optional[str]
    fingerprint_depth: Optional[str]
    fingerprint_stale: bool
    missing: List[str]
    next_attempt_at: Optional[str]
    last_error: Optional[Error]
    fingerprint_age_seconds: Optional[int]


class PlannerAnswer(Answer):
    gpu: str
    fingerprint_id: str
    fingerprint_stale: bool
    origin: str
    speeds_taken_at: Optional[str]


class ScopeAllocation(Document):
    bytes: int
    granularity_bytes: int


class Part(Document):
    first_byte: int
    length_bytes: int


class ScopesItem(Document):
    first_byte: int
    length_bytes: int
    parts: List[Part]


class Scope(PlannerAnswer):
    bytes: int
    allocations: List[ScopeAllocation]
    access: str
    advice: str
    scope_bytes: int
    passes: int
    scopes: Optional[List[ScopesItem]]
    predicted_gbps: Optional[float]
    predicted_gbps_reason: str
    naive_gbps: Optional[float]
    naive_gbps_reason: str
    reason: str


class PlacementWindow(Document):
    index: int
    first_byte: int
    length_bytes: int
    sm_count: int
    group_count: int


class Placement(PlannerAnswer):
    bytes: int
    advice: str
    window_count: int
    windows: List[PlacementWindow]
    window_of_sm: List[Optional[int]]
    headroom_bytes: Optional[int]
    headroom_bytes_reason: str
    predicted_gbps: Optional[float]
    predicted_gbps_reason: str
    naive_gbps: Optional[float]
    naive_gbps_reason: str
    reason: str


class PlanAllocation(Document):
    bytes: int
    touches: float
    element_bytes: int
    transaction_bytes: int
    granularity_bytes: int
    basis: str


class Option(Document):
    strategy: str
    possible: bool
    gbps: Optional[float]
    gbps_reason: str
    times_naive: Optional[float]
    times_naive_reason: str
    passes: int
    windows: int
    scope_bytes: int
    extra_bytes_per_access: float
    extra_bytes: Optional[float]
    extra_bytes_reason: str
    bound: str
    why: str


class PlanScope(Document):
    scope_bytes: int
    passes: int
    scopes: Optional[List[ScopesItem]]


class Window(Document):
    index: int
    first_byte: int
    length_bytes: int
    parts: List[Part]
    sm_count: int
    group_count: int


class PlanPlacement(Document):
    window_count: int
    windows: List[Window]
    window_of_sm: List[Optional[int]]
    headroom_bytes: int


class Plan(PlannerAnswer):
    bytes: int
    access: str
    element_bytes: int
    transaction_bytes: int
    item_bytes: float
    allocations: List[PlanAllocation]
    basis: str
    in_reach_gbps: Optional[float]
    in_reach_gbps_reason: str
    contiguous: float
    naive_contiguous_gbps: Optional[float]
    naive_contiguous_gbps_reason: str
    naive_scattered_gbps: Optional[float]
    naive_scattered_gbps_reason: str
    recommended: str
    reason: str
    options: List[Option]
    scope: Optional[PlanScope]
    placement: Optional[PlanPlacement]


class SplitJob(Document):
    bytes: int
    weight: float
    fits: bool
    sm_count: int
    group_count: int
    sms: List[int]
    groups: List[int]
    window_count: int
    windows: List[Window]
    window_of_sm: List[Optional[int]]
    gbps: Optional[float]
    gbps_reason: str
    unsplit_gbps: Optional[float]
    unsplit_gbps_reason: str
    why: str


class Split(PlannerAnswer):
    jobs: List[SplitJob]
    reason: str


class Explain(PlannerAnswer):
    bytes: int
    access: str
    element_bytes: int
    transaction_bytes: int
    basis: str
    observed_gbps: float
    verdict: str
    in_reach_gbps: Optional[float]
    in_reach_gbps_reason: str
    expected_gbps: Optional[float]
    expected_gbps_reason: str
    contiguous: float
    naive_contiguous_gbps: Optional[float]
    naive_contiguous_gbps_reason: str
    naive_scattered_gbps: Optional[float]
    naive_scattered_gbps_reason: str
    loss_gbps: Optional[float]
    loss_gbps_reason: str
    translation_share: Optional[float]
    translation_share_reason: str
    reason: str
    checks: List[str]


class MemoryChoice(Document):
    kind: str
    peer_uuid: Optional[str]
    allocate: str
    capacity_bytes: Optional[int]
    capacity_bytes_reason: str
    strategy: str
    gbps: Optional[float]
    gbps_reason: str
    basis: str
    probed_bytes: Optional[int]
    probed_bytes_reason: str
    probed_gbps: Optional[float]
    probed_gbps_reason: str
    sms: Optional[int]
    sms_reason: str
    in_flight_bytes: Optional[int]
    in_flight_bytes_reason: str
    passes: int
    scope_bytes: int
    windows: int
    window_bytes: int
    why: str


class MemoryLeftOut(Document):
    kind: str
    peer_uuid: Optional[str]
    why: str


class MemoryDevice(Document):
    plateau_gbps: Optional[float]
    plateau_gbps_reason: str
    whole_memory_gbps: Optional[float]
    whole_memory_gbps_reason: str
    reach_bytes: Optional[int]
    reach_bytes_reason: str
    entry_bytes: Optional[int]
    entry_bytes_reason: str
    frame_bytes: Optional[int]
    frame_bytes_reason: str
    contiguous_miss_ns: Optional[float]
    contiguous_miss_ns_reason: str
    scattered_miss_ns: Optional[float]
    scattered_miss_ns_reason: str


class KindOfMemoryCurve(Document):
    region_bytes: int
    naive_gbps: Optional[float]
    naive_gbps_reason: str
    by_group_gbps: Optional[float]
    by_group_gbps_reason: str
    by_sm_gbps: Optional[float]
    by_sm_gbps_reason: str
    windows: int


class EvidenceColumns(Document):
    method: Any
    repeats: Any
    margin: Any


class KindOfMemoryRows(Document):
    access: str
    transaction_bytes: int
    plateau_gbps: Optional[float]
    plateau_gbps_reason: str
    probed_gbps: Optional[float]
    probed_gbps_reason: str


class MemoryNode(Document):
    node: int
    gbps: Optional[float]
    gbps_reason: str


class Evidence(Document):
    method: str
    repeats: int
    margin: float


class KindOfMemory(Document):
    kind: str
    peer_uuid: Optional[str]
    peer_memory_bytes: Optional[int]
    peer_memory_bytes_reason: str
    probed_bytes: Optional[int]
    probed_bytes_reason: str
    plateau_gbps: Optional[float]
    plateau_gbps_reason: str
    reach_bytes: Optional[int]
    reach_bytes_reason: str
    onset_bytes: Optional[int]
    onset_bytes_reason: str
    windows_reach_bytes: Optional[int]
    windows_reach_bytes_reason: str
    windows_onset_bytes: Optional[int]
    windows_onset_bytes_reason: str
    group_reach_bytes: Optional[int]
    group_reach_bytes_reason: str
    group_onset_bytes: Optional[int]
    group_onset_bytes_reason: str
    entry_bytes: Optional[int]
    entry_bytes_reason: str
    beyond_gbps: Optional[float]
    beyond_gbps_reason: str
    written_factor: Optional[float]
    written_factor_reason: str
    latency_cycles: Optional[float]
    latency_cycles_reason: str
    beyond_latency_cycles: Optional[float]
    beyond_latency_cycles_reason: str
    sms_to_fill: Optional[int]
    sms_to_fill_reason: str
    write_gbps: Optional[float]
    write_gbps_reason: str
    atomic_gbps: Optional[float]
    atomic_gbps_reason: str
    curve: List[KindOfMemoryCurve]
    curve_evidence: Dict[str, EvidenceColumns]
    rows: List[KindOfMemoryRows]
    row_evidence: Dict[str, EvidenceColumns]
    nodes: List[MemoryNode]
    evidence: Dict[str, Evidence]


class Memory(PlannerAnswer):
    bytes: int
    access: str
    location: str
    element_bytes: int
    transaction_bytes: int
    device_memory_bytes: Optional[int]
    device_memory_bytes_reason: str
    host_memory_bytes: Optional[int]
    host_memory_bytes_reason: str
    reason: str
    choices: List[MemoryChoice]
    left_out: List[MemoryLeftOut]
    device: MemoryDevice
    memory: List[KindOfMemory]


class FitCache(Document):
    size_bytes: Optional[int]
    size_bytes_reason: str
    keeps_bytes: Optional[int]
    keeps_bytes_reason: str
    gbps: Optional[float]
    gbps_reason: str
    latency_cycles: Optional[float]
    latency_cycles_reason: str


class Fit(PlannerAnswer):
    bytes: int
    reuse: str
    shared_bytes: int
    blocks_per_sm: int
    transaction_bytes: int
    sm_bytes: int
    stays: str
    gbps: Optional[float]
    gbps_reason: str
    near_gbps: Optional[float]
    near_gbps_reason: str
    outside_gbps: Optional[float]
    outside_gbps_reason: str
    l1: FitCache
    l2: FitCache
    near_keeps_bytes: Optional[int]
    near_keeps_bytes_reason: str
    reach_bytes: Optional[int]
    reach_bytes_reason: str
    memory_latency_cycles: Optional[float]
    memory_latency_cycles_reason: str
    carveout_bytes: Optional[int]
    carveout_bytes_reason: str
    padding_bytes: Optional[int]
    padding_bytes_reason: str
    loads_enough: Optional[int]
    loads_enough_reason: str
    loads_short: Optional[int]
    loads_short_reason: str
    sms_enough: Optional[int]
    sms_enough_reason: str
    sms_short: Optional[int]
    sms_short_reason: str
    cluster_sms: Optional[int]
    cluster_sms_reason: str
    reason: str


class TlbLevelSetSize(Document):
    ways: int
    sets: int


class TlbLevel(Document):
    level: int
    entries: Optional[int]
    entries_reason: str
    entry_bytes: Optional[int]
    entry_bytes_reason: str
    page_bytes: Optional[int]
    page_bytes_reason: str
    reach_bytes: Optional[int]
    reach_bytes_reason: str
    onset_bytes: Optional[int]
    onset_bytes_reason: str
    saturation_bytes: Optional[int]
    saturation_bytes_reason: str
    sets: Optional[int]
    sets_reason: str
    ways: Optional[int]
    ways_reason: str
    set_sizes: List[TlbLevelSetSize]
    victim_entries: Optional[int]
    victim_entries_reason: str
    replacement: str
    fill: str
    entry_pages: Optional[int]
    entry_pages_reason: str
    tag_bytes: Optional[int]
    tag_bytes_reason: str
    miss_penalty_cycles: Optional[float]
    miss_penalty_cycles_reason: str
    shared_by: str
    groups: List[List[int]]
    confidence: Optional[float]
    confidence_reason: str
    evidence: Dict[str, Evidence]


class FingerprintTlbBeyond(Document):
    probed_bytes: int
    reach_bytes: Optional[int]
    reach_bytes_reason: str
    walk_cycles: Optional[float]
    walk_cycles_reason: str


class FingerprintTlbPageBytes(Document):
    virtual: Optional[int]
    virtual_reason: str
    plain: Optional[int]
    plain_reason: str
    managed: Optional[int]
    managed_reason: str


class FingerprintTlb(Document):
    levels: List[TlbLevel]
    beyond: FingerprintTlbBeyond
    page_bytes: FingerprintTlbPageBytes


class TopologyGroup(Document):
    id: int
    sms: List[int]
    miss_penalty_cycles: Optional[float]
    miss_penalty_cycles_reason: str
    random_read_gbps: Optional[float]
    random_read_gbps_reason: str
    alone_gbps: Optional[float]
    alone_gbps_reason: str
    beyond_gbps: Optional[float]
    beyond_gbps_reason: str
    penalty_class: Optional[int]
    penalty_class_reason: str
    speed_class: Optional[int]
    speed_class_reason: str
    sm_miss_penalty_cycles: List[Optional[float]]


class DisabledByGroup(Document):
    group: int
    sms: int


class Disabled(Document):
    sm_count: Optional[int]
    sm_count_reason: str
    unit_sms: Optional[int]
    unit_sms_reason: str
    lost_groups: Optional[int]
    lost_groups_reason: str
    by_group: List[DisabledByGroup]
    signature: Optional[str]
    candidate_count: Optional[int]
    candidate_count_reason: str
    candidates: List[List[int]]


class GroupPairsSlow(Document):
    groups: List[int]
    ratio: float
    cause: str


class GroupPairs(Document):
    measured: int
    worst_ratio: Optional[float]
    worst_ratio_reason: str
    worst: List[int]
    share_tlb: str
    slow_count: int
    slow: List[GroupPairsSlow]


class Topology(Document):
    level: Optional[int]
    level_reason: str
    groups: List[TopologyGroup]
    group_evidence: Dict[str, EvidenceColumns]
    nominal_group_sms: Optional[int]
    nominal_group_sms_reason: str
    full_sm_count: Optional[int]
    full_sm_count_reason: str
    disabled: Disabled
    confidence: Optional[float]
    confidence_reason: str
    penalty_classes: Optional[int]
    penalty_classes_reason: str
    speed_classes: Optional[int]
    speed_classes_reason: str
    speed_follows_sms: str
    pairs: GroupPairs
    evidence: Dict[str, Evidence]


class FingerprintWindows(Document):
    reach_bytes: Optional[int]
    reach_bytes_reason: str
    entry_bytes: Optional[int]
    entry_bytes_reason: str
    recommended_bytes: Optional[int]
    recommended_bytes_reason: str


class ThroughputCurve(Document):
    region_bytes: int
    naive_gbps: Optional[float]
    naive_gbps_reason: str
    by_group_gbps: Optional[float]
    by_group_gbps_reason: str
    by_sm_gbps: Optional[float]
    by_sm_gbps_reason: str
    windows: int


class AccessRatePoint(Document):
    region_bytes: int
    naive_gbps: Optional[float]
    naive_gbps_reason: str
    by_group_gbps: Optional[float]
    by_group_gbps_reason: str


class AccessRate(Document):
    access: str
    transaction_bytes: int
    plateau_gbps: Optional[float]
    plateau_gbps_reason: str
    points: List[AccessRatePoint]
    point_evidence: Dict[str, EvidenceColumns]
    evidence: Dict[str, Evidence]


class Throughput(Document):
    plateau_gbps: Optional[float]
    plateau_gbps_reason: str
    whole_memory_gbps: Optional[float]
    whole_memory_gbps_reason: str
    curve: List[ThroughputCurve]
    curve_evidence: Dict[str, EvidenceColumns]
    rates: List[AccessRate]
    evidence: Dict[str, Evidence]


class Contiguity(Document):
    frame_bytes: Optional[int]
    frame_bytes_reason: str
    contiguous_miss_ns: Optional[float]
    contiguous_miss_ns_reason: str
    scattered_miss_ns: Optional[float]
    scattered_miss_ns_reason: str
    evidence: Dict[str, Evidence]


class L2(Document):
    sides: Optional[int]
    sides_reason: str
    granule_bytes: Optional[int]
    granule_bytes_reason: str
    atomic_near_cycles: Optional[float]
    atomic_near_cycles_reason: str
    atomic_far_cycles: Optional[float]
    atomic_far_cycles_reason: str
    sms: List[List[int]]
    locality_domains: Optional[int]
    locality_domains_reason: str
    locality_domain_sms: Optional[int]
    locality_domain_sms_reason: str
    sides_match_domains: str
    evidence: Dict[str, Evidence]


class WorkingSet(Document):
    transaction_bytes: int
    set_bytes: int
    same_gbps: Optional[float]
    same_gbps_reason: str
    own_gbps: Optional[float]
    own_gbps_reason: str
    near_gbps: Optional[float]
    near_gbps_reason: str


class CacheCarveout(Document):
    shared_bytes: int
    size_bytes: Optional[int]
    size_bytes_reason: str
    fits_bytes: Optional[int]
    fits_bytes_reason: str


class Cache(Document):
    kind: str
    size_bytes: Optional[int]
    size_bytes_reason: str
    fits_bytes: Optional[int]
    fits_bytes_reason: str
    line_bytes: Optional[int]
    line_bytes_reason: str
    sector_bytes: Optional[int]
    sector_bytes_reason: str
    fill_bytes: Optional[int]
    fill_bytes_reason: str
    sets: Optional[int]
    sets_reason: str
    ways: Optional[int]
    ways_reason: str
    replacement: str
    trace: Optional[str]
    latency_cycles: Optional[float]
    latency_cycles_reason: str
    miss_latency_cycles: Optional[float]
    miss_latency_cycles_reason: str
    same_as_l1: str
    carveouts: List[CacheCarveout]
    evidence: Dict[str, Evidence]


class Latency(Document):
    p1_cycles: Optional[float]
    p1_cycles_reason: str
    p2_cycles: Optional[float]
    p2_cycles_reason: str
    p3_cycles: Optional[float]
    p3_cycles_reason: str
    p4_cycles: Optional[float]
    p4_cycles_reason: str
    p5_cycles: Optional[float]
    p5_cycles_reason: str
    p6_cycles: Optional[float]
    p6_cycles_reason: str
    near_cycles: Optional[float]
    near_cycles_reason: str
    far_cycles: Optional[float]
    far_cycles_reason: str
    tail_cycles: Optional[float]
    tail_cycles_reason: str
    tail_share: Optional[float]
    tail_share_reason: str
    evidence: Dict[str, Evidence]


class SharedMemoryWidth(Document):
    width_bytes: int
    latency_cycles: Optional[float]
    latency_cycles_reason: str
    conflict_cycles: Optional[float]
    conflict_cycles_reason: str
    bytes_per_cycle: Optional[float]
    bytes_per_cycle_reason: str
    loads_enough: Optional[int]
    loads_enough_reason: str
    loads_needed: Optional[int]
    loads_needed_reason: str
    evidence: Dict[str, Evidence]


class SharedMemoryStride(Document):
    width_bytes: int
    stride_bytes: int
    cycles: Optional[float]
    cycles_reason: str
    passes: Optional[int]
    passes_reason: str


class SharedMemory(Document):
    sm_bytes: Optional[int]
    sm_bytes_reason: str
    block_bytes: Optional[int]
    block_bytes_reason: str
    banks: Optional[int]
    banks_reason: str
    bank_bytes: Optional[int]
    bank_bytes_reason: str
    widths: List[SharedMemoryWidth]
    strides: List[SharedMemoryStride]
    evidence: Dict[str, Evidence]


class ClustersSize(Document):
    sms: int
    clusters: Optional[int]
    clusters_reason: str
    usable_sms: Optional[int]
    usable_sms_reason: str
    latency_cycles: Optional[float]
    latency_cycles_reason: str
    bytes_per_cycle: Optional[float]
    bytes_per_cycle_reason: str
    evidence: Dict[str, Evidence]


class Clusters(Document):
    largest: Optional[int]
    largest_reason: str
    own_cycles: Optional[float]
    own_cycles_reason: str
    gpcs: Optional[int]
    gpcs_reason: str
    sms: List[List[int]]
    sizes: List[ClustersSize]
    evidence: Dict[str, Evidence]


class ParallelismSurface(Document):
    warps: int
    loads: int
    gbps: Optional[float]
    gbps_reason: str


class ParallelismBySm(Document):
    sms: int
    gbps: Optional[float]
    gbps_reason: str


class Parallelism(Document):
    plateau_gbps: Optional[float]
    plateau_gbps_reason: str
    latency_ns: Optional[float]
    latency_ns_reason: str
    loads_enough: Optional[int]
    loads_enough_reason: str
    loads_short: Optional[int]
    loads_short_reason: str
    sms_enough: Optional[int]
    sms_enough_reason: str
    sms_short: Optional[int]
    sms_short_reason: str
    surface: List[ParallelismSurface]
    by_sms: List[ParallelismBySm]
    evidence: Dict[str, Evidence]


class FingerprintConditions(Document):
    verdict: str
    arena: Optional[str]
    range_bytes: int
    backing_bytes: int
    sm_clock_khz: Optional[int]
    sm_clock_khz_reason: str
    other_processes: Optional[int]
    other_processes_reason: str
    host_memory_bytes: Optional[int]
    host_memory_bytes_reason: str
    pcie_generation: Optional[int]
    pcie_generation_reason: str
    pcie_generation_used: Optional[int]
    pcie_generation_used_reason: str
    pcie_lanes: Optional[int]
    pcie_lanes_reason: str
    pcie_lanes_supported: Optional[int]
    pcie_lanes_supported_reason: str
    notes: List[str]


class Fingerprint(Answer):
    id: str
    gpu: Identity
    origin: str
    depth: str
    taken_at: str
    duration_ms: int
    probe_ms: int
    device_memory_bytes: int
    tlb: FingerprintTlb
    topology: Topology
    windows: FingerprintWindows
    throughput: Throughput
    contiguity: Contiguity
    l2: L2
    working_sets: List[WorkingSet]
    working_set_evidence: Dict[str, EvidenceColumns]
    caches: List[Cache]
    latency: Latency
    shared: SharedMemory
    clusters: Clusters
    parallelism: Parallelism
    memory: List[KindOfMemory]
    conditions: FingerprintConditions
    measurement_id: str
    measurement_depth: str
    kept: List[Any]
    dropped: Any
