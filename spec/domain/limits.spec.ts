import * as assert from 'uvu/assert';
import { LIMITS, OWN_BOUNDS, ownBounds } from '../../src/domain/limits.ts';
import { DEFAULT_POLICY } from '../../src/domain/policy.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('limits');

test('bounds everything by a positive, finite number', () => {
  for (const [name, limit] of Object.entries(LIMITS)) {
    assert.ok(Number.isFinite(limit) && limit > 0, name);
  }
});

test('says the unit last in the name of every size and time', () => {
  const units = /(?:Bytes|Ms|Characters)$/;
  const withoutUnit = Object.entries(LIMITS).filter(([name, limit]) => limit >= 5_000 && !units.test(name));
  assert.equal(withoutUnit, [
    ['bodyValues', LIMITS.bodyValues],
    ['listItems', LIMITS.listItems],
    ['sessions', LIMITS.sessions],
    ['instances', LIMITS.instances],
  ]);
});

test('lets through the sizes and counts that are promised', () => {
  const { requestBodyBytes, requestHeaderBytes, backendMessageBytes } = LIMITS;
  const { inFlightPerInstance, queuedPerInstance, queueWaitMs } = LIMITS;
  assert.equal(
    { requestBodyBytes, requestHeaderBytes, backendMessageBytes },
    { requestBodyBytes: 4_194_304, requestHeaderBytes: 65_536, backendMessageBytes: 67_108_864 },
  );
  assert.equal(
    { inFlightPerInstance, queuedPerInstance, queueWaitMs },
    { inFlightPerInstance: 256, queuedPerInstance: 256, queueWaitMs: 5_000 },
  );
});

test('parses messages that are smaller than the largest one', () => {
  assert.ok(LIMITS.inspectedResultBytes < LIMITS.parsedMessageBytes);
  assert.ok(LIMITS.parsedMessageBytes < LIMITS.backendMessageBytes);
});

test('has stopped a child before the grace of the gateway is over', () => {
  assert.ok(LIMITS.stdinEndMs + LIMITS.terminateMs < LIMITS.graceMs);
});

test('leaves what single clients may have as it is where nothing is said', () => {
  assert.equal([ownBounds(), ownBounds({ share: 1 })], [OWN_BOUNDS, { processes: 64, share: 1 }]);
});

test('lets nobody wait in line longer than a call may take', () => {
  assert.ok(LIMITS.queueWaitMs < DEFAULT_POLICY.callTimeoutMs);
  assert.ok(DEFAULT_POLICY.callTimeoutMs <= LIMITS.callLongestMs);
});

test('waits longer for a restart from time to time, and forgives after more than the longest wait', () => {
  assert.ok(LIMITS.restartFirstMs < LIMITS.restartLongestMs);
  assert.ok(LIMITS.restartLongestMs < LIMITS.restartForgivenMs);
});

test.run();
