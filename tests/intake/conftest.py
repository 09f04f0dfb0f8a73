from tests.harness.toy_sources import clock as clock
from tests.harness.toy_sources import logs as logs
from tests.harness.toy_sources import toy as toy
