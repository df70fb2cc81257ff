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

test('leaves what single clients may have as it is where nothing is said', () => {
  assert.equal([ownBounds(), ownBounds({ share: 1 })], [OWN_BOUNDS, { processes: 64, share: 1 }]);
});

test('keeps bounds in order: of messages, of the end of a child, of waits in line, and of waits for a restart', () => {
  const { inspectedResultBytes, parsedMessageBytes, backendMessageBytes, callLongestMs } = LIMITS;
  assert.ok(inspectedResultBytes < parsedMessageBytes && parsedMessageBytes < backendMessageBytes);
  assert.ok(LIMITS.stdinEndMs + LIMITS.terminateMs < LIMITS.graceMs);
  const { callTimeoutMs } = DEFAULT_POLICY;
  assert.ok(LIMITS.queueWaitMs < callTimeoutMs && callTimeoutMs <= callLongestMs);
  const { restartFirstMs, restartLongestMs, restartForgivenMs } = LIMITS;
  assert.ok(restartFirstMs < restartLongestMs && restartLongestMs < restartForgivenMs);
});

test.run();
