"""All resources of the API besides views and their changes."""

from __future__ import annotations

from fastapi import APIRouter

from harken.server.identities import Identities
from harken.server.resources.account_resources import account_resources
from harken.server.resources.continual_resources import continual_resources
from harken.server.resources.message_resources import message_resources
from harken.server.resources.query_resources import query_resources
from harken.server.resources.resource_exchange import Exchange
from harken.server.resources.schema_resources import schema_resources
from harken.server.resources.source_resources import source_resources
from harken.server.service import Service


def resource_routes(service: Service, identities: Identities) -> list[APIRouter]:
    exchange = Exchange(service)
    return [
        continual_resources(exchange),
        source_resources(exchange),
        query_resources(exchange),
        schema_resources(exchange),
        account_resources(exchange, identities),
        message_resources(exchange),
    ]
