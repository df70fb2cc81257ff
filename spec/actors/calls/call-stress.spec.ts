// Calls over backends that fail in every way, made up by fast-check; a failing run is printed with its seed. Each call
// ends once, reaches an instance at most once, and is repeated only where a repeat is allowed.

import fc from 'fast-check';
import * as assert from 'uvu/assert';
import { backendUnavailable } from '../../../src/domain/errors/backend-errors.ts';
import { type Delivered, GatewayError } from '../../../src/domain/errors/errors.ts';
import { isJsonObject } from '../../../src/domain/json/json.ts';
import { type Caller, Harness } from '../../helpers/backends/harness.ts';
import type { ScriptedExchange } from '../../helpers/backends/scripted-transport.ts';
import { suite } from '../../helpers/suite.ts';
import { settled } from '../../helpers/time/simulated-time.ts';

const test = suite('call: stress', { timeoutMs: 60_000 });
const IDS = ['a', 'b', 'c', 'd', 'e'];
const MAX_RETRIES = 3;

/** What a backend does with one request, and whether it does so synchronously. */
interface Deed {
  readonly does: 'answer' | 'refuse' | 'notify and fail' | Delivered;
  readonly isAtOnce: boolean;
}

const deed: fc.Arbitrary<Deed> = fc.record({
  does: fc.constantFrom('answer', 'answer', 'refuse', 'notify and fail', 'no', 'no', 'unknown', 'yes'),
  isAtOnce: fc.boolean(),
});
const tools = fc.array(fc.constantFrom('write', 'read', 'again'), { minLength: 1, maxLength: 60 });

test('each call ends once, as its last instance ended it, and is repeated only where allowed', () =>
  fc.assert(
    fc.asyncProperty(fc.array(deed, { minLength: 1, maxLength: 30 }), tools, async (deeds, names) => {
      const harness = new Harness({ policy: { maxRetries: MAX_RETRIES } });
      /** The attempts of each call: the instance, and what the instance did. */
      const fates = names.map((): { id: string; deed: Deed }[] => []);
      let done = 0;
      for (const id of IDS) {
        await harness.add(id, (exchange) => {
          const next = deeds[done % deeds.length] ?? { does: 'answer', isAtOnce: false };
          done += 1;
          fates[numberOf(exchange)]?.push({ id, deed: next });
          if (next.isAtOnce) perform(exchange, next);
          else queueMicrotask(() => perform(exchange, next));
        });
      }
      const callers = names.map((name, number) =>
        harness.call({ method: 'tools/call', params: { name, arguments: { number } } }),
      );
      await settled();
      for (const [number, name] of names.entries()) {
        await check(callers[number], fates[number] ?? [], name !== 'write');
      }
      const found = harness.fleet.ownRefs().map(({ activeCalls }) => activeCalls);
      assert.equal(found, [0, 0, 0, 0, 0]);
      const active = harness.fleet.templates.names.map(
        (name) => harness.fleet.templates.group(name).pool.outliers.activeCalls,
      );
      assert.equal(active, [0], 'the pool counts the same');
      const finished = harness.attempts().length;
      assert.is(finished, fates.flat().length);
      assert.is(finished - harness.eventsOf('call.retried').length, names.length);
      assert.is(harness.callsThat('refused').length, 0);
      await harness.close();
    }),
    { numRuns: 200 },
  ));

test.run();

async function check(
  caller: Caller | undefined,
  fate: readonly { readonly id: string; readonly deed: Deed }[],
  isRepeatable: boolean,
): Promise<void> {
  const end = await caller?.end;
  const last = fate.at(-1);
  const before = fate.slice(0, -1).map(({ deed: { does } }) => does);
  assert.is(new Set(fate.map(({ id }) => id)).size, fate.length, 'no instance is asked twice');
  assert.ok(fate.length <= 1 + MAX_RETRIES, 'no more retries than allowed');
  assert.ok(before.every((does) => does === 'no' || (does === 'unknown' && isRepeatable)));
  if (last?.deed.does === 'answer' || last?.deed.does === 'refuse') {
    assert.is(end, last.id);
    assert.is(caller?.answers.length, 1);
    return;
  }
  const delivered = last?.deed.does === 'notify and fail' ? 'no' : last?.deed.does;
  assert.instance(end, GatewayError);
  const mayHaveArrived = delivered === 'no' && before.includes('unknown');
  assert.is(end instanceof GatewayError && end.delivered, mayHaveArrived ? 'unknown' : delivered);
  const isRepeatAllowed = delivered === 'no' && last?.deed.does === 'no' && fate.length <= MAX_RETRIES;
  assert.not(isRepeatAllowed, 'a call that was not delivered goes on while it may');
}

function perform(exchange: ScriptedExchange, { does }: Deed): void {
  if (does === 'answer') exchange.result();
  else if (does === 'refuse') exchange.refuse(-32603);
  else {
    if (does === 'notify and fail') exchange.notify('notifications/progress');
    exchange.fail(backendUnavailable('it broke', { delivered: does === 'notify and fail' ? 'no' : does }));
  }
}

function numberOf({ request }: ScriptedExchange): number {
  const { params } = request;
  return isJsonObject(params?.arguments) ? Number(params.arguments.number) : Number.NaN;
}
