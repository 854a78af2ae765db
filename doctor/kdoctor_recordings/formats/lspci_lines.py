"""The lines of ``lspci`` that kdoctor knows. Most are not about the health of a device or a link.

Source: https://github.com/pciutils/pciutils (``lspci.c`` and the files ``ls-*.c``).
"""

_OF_DEVICE = (
    r"Subsystem|DeviceName|Physical Slot|Device tree node|Control|Status|Latency|Interrupts?|NUMA node|IOMMU group"
    r"|Flags|(?:\[virtual\] )?(?:Region \d+|Memory at|I/O ports at|Expansion ROM at)|Bus|BridgeCtl|BIST is running"
    r"|BIST result|(?:I/O|Memory|Prefetchable memory|Unknown resource) behind bridge|(?:Memory|I/O) window \d+"
    r"|Secondary [Ss]tatus|16-bit legacy interface|Capabilities|Kernel driver in use|Kernel modules|Power"
)
_REGISTERS = (
    r"(?:ACS|AER|AF|ARI|ATS|AtomicOps|CE|CXL|CXLPort|Cnt|DOE|Dev|Dpc|FB|FlitEiOs|FlitEi|IDE|IOV|L1Sub|LaneErr|Lnk"
    r"|Mcast|Meas|PASID|PRI|PTM|Phy\d\d|Port|Root|Slt|UE)(?:Cap|Ctl|Ctrl|Sta|Stat|Status|Sts|Svrt|Msk|Cmd)\d*|Cap[ABC]"
    r"|FBModTS|FlitEiOs[RT]x|Mcast(?:BAR|BlockAllVec|BlockUntransVec|OverlayBAR|ReceiveVec)|(?:\w+)?IDE#\d+"
    r"|PTM(?:Control|ClockGranularity|EffectiveGranularity)"
)
_OF_CAPABILITIES = (
    r"Addr|Address|AlternateBus|Arb|Port Arbitration Table|AssociatedBusNumbers|BAR(?: |=)\d+|BAR Equivalent Indicator"
    r"|Base|Block\d+|Bridge|Bus Number|Caps|Changed|Command|Compliance (?:Preset/)?De-emphasis|Control|Ctrl|Desc"
    r"|Downstream(?:Comp)?|Entry|Eq2|Error Handling|ErrorSrc|Events to count|Feature Capability|Flags|FuncMap"
    r"|GPF Phase|HeaderLog|Initial VFs|IntMsgNum|L0|Link (?:Config|Control|Error|Frequency)|Link\d+|Locator\d+|Log[12]"
    r"|Mapping Address Base|Masking|Max (?:no )?snoop latency|MaxOffset|Modified TS Usage Mode|NumLogDevs|Number of"
    r"|PBA|Page Request Capacity|PortCommonModeRestoreTime|PrimaryProperties|RCiEPBitmap|Range\d+|Retimer|Revision ID"
    r"|Received Enhanced Link Behavior Control|SDS|SKP|SecondaryProperties|Slot #?\d+|Source|Status|Steering table"
    r"|Supported Page Size|SyndParityGrp\d|T_CommonMode|Transmit Margin|Upstream|VC\d+|VF Migration|VF offset"
    r"|Vector table|DMWr|UIO|Interrupt (?:vector mode|Generated)|No steering table|Reserved (?:steering|time)"
    r"|Device specific mode|Extended requester|Register Locator|EmergencyPowerReduction|MaxPayload"
    r"|(?:PCIe |Non-CXL |MLD |GPF |CXL )\w*.*DVSEC"
)
_OF_VPD = r"Product Name|(?:Read-only|Read/write) fields|\[\w\w\]|End|No end tag found|Not readable"
_FLAGS = r">?\w[\w.<>()&-]*[+-](?=[\s,<>:\]]|$)"
"""The first of the bits that continue a register: ``TrErr- Train-``."""
_NOT_SHOWN = r"<(?:access denied|unreadable|\?|chain|unassigned)|\.\.\.|!!! Unknown header type 7f"

_NAMES = rf"(?:{_OF_DEVICE}|{_REGISTERS}|{_OF_CAPABILITIES}|{_OF_VPD})(?!\w)"
INDENTED = rf"\s+(?:{_NAMES}|{_FLAGS}|{_NOT_SHOWN}).*"
"""A line about a device: a name that ``lspci`` prints, or bits."""
