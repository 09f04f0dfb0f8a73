"""Which network addresses Harken connects to on behalf of others: for pages, and for webhooks.

An address that somebody typed must not reach what only this machine can reach: loopback, private,
link-local and multicast networks, and the ones reserved for special use. An IPv6 address that
stands for an IPv4 address counts as that one.

Law: the check is made on the address that is connected to, never on a name; so a name that resolves
differently the second time gains nothing.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from harken.errors import HarkenError

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve: TypeAlias = Callable[..., Iterable[Any]]
"""With the arguments and answers of `socket.getaddrinfo`."""

_RANGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("unspecified", ("0.0.0.0/8", "::/128")),
    ("loopback", ("127.0.0.0/8", "::1/128")),
    (
        "private",
        ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "fec0::/10"),
    ),
    ("link-local", ("169.254.0.0/16", "fe80::/10")),
    ("multicast", ("224.0.0.0/4", "ff00::/8")),
    ("broadcast", ("255.255.255.255/32",)),
    (
        "documentation",
        ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32", "3fff::/20"),
    ),
    (
        "reserved",
        (
            "192.0.0.0/24",
            "192.88.99.0/24",  # relays of 6to4
            "198.18.0.0/15",  # measurements between networks
            "240.0.0.0/4",
            "168.63.129.16/32",  # a cloud's virtual machines meet their host there
            "2001::/23",  # protocols, Teredo among them
            "64:ff9b:1::/48",  # translators of a network's own
        ),
    ),
)
SPECIAL: tuple[tuple[Network, str], ...] = tuple(
    (ipaddress.ip_network(text), name) for name, texts in _RANGES for text in texts
)
UNICAST = ipaddress.IPv6Network("2000::/3")
"""All that IANA has given out of IPv6 for general use."""
COMPATIBLE = ipaddress.IPv6Network("::/96")
TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")
SIX_TO_FOUR = ipaddress.IPv6Network("2002::/16")
ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})
"""What stands before the IPv4 address in the last half of an address of such a tunnel."""


def special_use(address: str | Address) -> str | None:
    """What makes an address special, in one word; None for an ordinary public one.

    >>> special_use("127.0.0.1"), special_use("::ffff:10.1.2.3"), special_use("93.184.215.14")
    ('loopback', 'private', None)
    >>> special_use("64:ff9b::a9fe:a9fe"), special_use("fe80::1%eth0")
    ('link-local', 'link-local')
    """
    found = ipaddress.ip_address(address) if isinstance(address, str) else address
    name = next((name for network, name in SPECIAL if found in network), None)
    if name is not None or isinstance(found, ipaddress.IPv4Address):
        return name or (None if found.is_global else "reserved")
    inner = _embedded(found)
    if inner is not None:
        return special_use(inner) or (
            None if found in TRANSLATED or found.ipv4_mapped else "tunnel"
        )
    return None if found in UNICAST and found.is_global else "reserved"


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that packets to this one are sent to in the end."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    number = int(address)
    is_isatap = (number >> 32) & 0xFFFF_FFFF in ISATAP
    if address in COMPATIBLE or address in TRANSLATED or is_isatap:
        return ipaddress.IPv4Address(number & 0xFFFF_FFFF)
    if address in SIX_TO_FOUR:
        return ipaddress.IPv4Address((number >> 80) & 0xFFFF_FFFF)
    return None


def permitted_addresses(
    host: str, port: int, *, allow_private: bool = False, resolve: Resolve = socket.getaddrinfo
) -> list[str]:
    """The addresses of a host that may be connected to, in the resolver's order. Connect to one of
    these, not to the name. Raises what the resolver raises, and `not-allowed` if none is left."""
    answers = resolve(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(answer[4][0]) for answer in answers))
    if allow_private:
        return addresses
    uses = {address: special_use(address) for address in addresses}
    permitted = [address for address, use in uses.items() if use is None]
    if not permitted:
        raise _refused(host, uses)
    return permitted


def check_connected(address: str, *, allow_private: bool = False) -> None:
    """The same for a connection that exists, by the address of its other end."""
    use = None if allow_private else special_use(address)
    if use is not None:
        raise _refused(address, {address: use})


def _refused(host: str, uses: dict[str, str | None]) -> HarkenError:
    address, use = next(iter(uses.items()), (host, "unknown"))
    where = host if address == host else f"{host} is {address}, which"
    article = "an" if (use or "")[:1] in "aeiou" else "a"
    return HarkenError(
        f"{where} is {article} {use} address, and Harken connects to public ones only",
        code="not-allowed",
        hint="the operator can allow it: --set allow_private_addresses=true, or "
        "HARKEN_ALLOW_PRIVATE_ADDRESSES=1 in the environment",
    )
