"""No address that only this machine can reach is connected to, however it is written."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harken.errors import HarkenError
from harken.network_guard import check_connected, permitted_addresses, special_use

PUBLIC = "93.184.215.14"


@pytest.mark.parametrize(
    ("address", "use"),
    [
        ("0.0.0.0", "unspecified"),
        ("127.8.8.8", "loopback"),
        ("10.0.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("100.100.100.200", "private"),
        ("169.254.169.254", "link-local"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.250", "multicast"),
        ("255.255.255.255", "broadcast"),
        ("203.0.113.7", "documentation"),
        ("198.19.0.1", "reserved"),
        ("168.63.129.16", "reserved"),
        ("250.1.1.1", "reserved"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("fe80::1", "link-local"),
        ("fe80::1%lo", "link-local"),
        ("fd00:ec2::254", "private"),
        ("fec0::1", "private"),
        ("ff02::1", "multicast"),
        ("2001:db8::1", "documentation"),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", "reserved"),
        ("64:ff9b:1::1", "reserved"),
        ("100::1", "reserved"),
        ("4000::1", "reserved"),
        ("::ffff:127.0.0.1", "loopback"),
        ("::127.0.0.1", "loopback"),
        ("64:ff9b::10.0.0.1", "private"),
        ("2002:7f00:1::", "loopback"),
        (f"::{PUBLIC}", "tunnel"),
        ("2606:4700::5efe:c0a8:101", "private"),
    ],
)
def test_special_addresses_have_a_name(address: str, use: str) -> None:
    assert special_use(address) == use


@pytest.mark.parametrize(
    "address", [PUBLIC, "1.1.1.1", "2606:4700:4700::1111", f"::ffff:{PUBLIC}", f"64:ff9b::{PUBLIC}"]
)
def test_public_addresses_are_not_special(address: str) -> None:
    assert special_use(address) is None


@given(st.ip_addresses(v=4))
def test_another_way_to_write_an_address_gains_nothing(address: ipaddress.IPv4Address) -> None:
    if special_use(address) is not None:
        for prefix in ("::ffff:", "::", "64:ff9b::", "2606:4700::5efe:"):
            assert special_use(f"{prefix}{address}") is not None


@given(st.ip_addresses())
def test_python_calls_nothing_global_private_that_we_permit(address: Any) -> None:
    if special_use(address) is None:
        inner = getattr(address, "ipv4_mapped", None) or address
        properties = ("private", "loopback", "link_local", "multicast", "unspecified")
        assert not any(getattr(inner, f"is_{each}") for each in properties)


def answers(*addresses: str) -> Any:
    def resolve(host: str, port: int, type: int) -> list[Any]:
        return [(socket.AF_INET, type, 6, "", (address, port)) for address in addresses]

    return resolve


def test_of_several_addresses_the_public_ones_are_left() -> None:
    resolve = answers("10.0.0.1", PUBLIC, PUBLIC)
    assert permitted_addresses("example.com", 80, resolve=resolve) == [PUBLIC]
    every = permitted_addresses("example.com", 80, allow_private=True, resolve=resolve)
    assert every == ["10.0.0.1", PUBLIC]


def test_a_name_with_only_special_addresses_is_refused() -> None:
    with pytest.raises(
        HarkenError, match=r"intern\.example is 10\.0\.0\.1, which is a private"
    ) as found:
        permitted_addresses("intern.example", 80, resolve=answers("10.0.0.1"))
    assert found.value.code == "not-allowed"
    assert "HARKEN_ALLOW_PRIVATE_ADDRESSES" in (found.value.hint or "")


@pytest.mark.parametrize("host", ["localhost", "0x7f.1", "2130706433", "0177.0.0.1", "[::1]"])
def test_no_spelling_of_this_machine_is_permitted(host: str) -> None:
    with pytest.raises((HarkenError, OSError)):
        permitted_addresses(host.strip("[]"), 80)


def test_a_connection_that_exists_is_checked_too() -> None:
    check_connected(PUBLIC)
    check_connected("127.0.0.1", allow_private=True)
    with pytest.raises(HarkenError, match="is a loopback address"):
        check_connected("127.0.0.1")
