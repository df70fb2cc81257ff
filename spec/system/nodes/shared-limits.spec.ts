// Two real gateways count the requests of a key together in a real Redis. While Redis is gone, requests are still served;
// afterwards they are counted together again. A silent Redis: databases/redis-counter.spec.ts.

import * as assert from 'uvu/assert';
import { type Answer, type Caller, caller, newKey } from '../../helpers/clients/caller.ts';
import { eventually } from '../../helpers/eventually.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { serverLine } from '../../helpers/network/server-line.ts';
import { type McpHarness, startGuarded } from '../../helpers/programs/mcp-program.ts';
import { redis } from '../../helpers/services/services.ts';
import { suite } from '../../helpers/suite.ts';

const server = await redis();
const test = suite('journey: shared limits', { timeoutMs: 90_000 });
const withRedis = test.needs(server.url, server.skip);

const keyLimit = 60;
/** Longest time of a request while Redis is gone. */
const servedWithinMs = 3_000;
/** Longest time until requests are counted together again, also on a machine so busy that Redis seems away. */
const togetherWithinMs = 15_000;

const folder = folderOfEach(test);
const gateways: McpHarness[] = [];
const undo: (() => Promise<unknown>)[] = [];
test.after.each(async () => {
  for (const gateway of gateways.splice(0)) await gateway.remove();
  for (const end of undo.splice(0)) await end();
});

withRedis('two gateways share the rate limit of a key, except while Redis is gone', async () => {
  const line = await serverLine(server.url ?? '');
  undo.push(line.close);
  // In sequence: the first creates the secret and the admin.
  const one = await start('one', line.url);
  const other = await start('other', line.url);

  /** Asserts that each gateway continues the count of the other for a new key. */
  const countedTogether = async () => {
    const round = await eventually(
      async () => {
        const both = await keyOnBoth([one, other]);
        const answers: number[] = [];
        for (const onIt of [...both, ...both]) answers.push(remainingOf(await onIt(request)));
        return answers;
      },
      (remaining) => remaining.every((count, turn) => count === keyLimit - 1 - turn),
      togetherWithinMs,
    );
    assert.equal(round, [keyLimit - 1, keyLimit - 2, keyLimit - 3, keyLimit - 4]);
  };

  await countedTogether();

  // Without Redis each gateway counts separately, and no request waits.
  await line.cut();
  for (const onIt of await keyOnBoth([one, other])) {
    const served = await inTurn(onIt, 30);
    assert.equal(
      served.map((answer) => [answer.status, remainingOf(answer)]),
      Array.from({ length: 30 }, (_, turn) => [200, keyLimit - 1 - turn]),
    );
    inTime(served);
  }
  await Promise.all([one, other].map(({ program }) => program.complains(/Redis does not answer/)));

  await line.mend();
  await countedTogether();
});

test.run();

const request = 'GET /gateway/templates';

/** A gateway on the shared file. */
async function start(nodeId: string, redisUrl: string): Promise<McpHarness> {
  const gateway = await startGuarded({
    folder: folder(),
    env: {
      GATEWAY_DATABASE_URL: 'sqlite:///gateway.db',
      GATEWAY_NODE_ID: nodeId,
      GATEWAY_API_KEY_LIMIT: String(keyLimit),
      GATEWAY_REDIS_URL: redisUrl,
    },
  });
  gateways.push(gateway);
  return gateway;
}

/** A new key without counted requests, as a caller of each gateway. */
async function keyOnBoth(both: readonly [McpHarness, McpHarness]): Promise<readonly Caller[]> {
  const { headers } = await newKey(both[0].admin, 'counted');
  return both.map(({ url }) => caller(url, headers));
}

async function inTurn(onIt: Caller, times: number): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let turn = 0; turn < times; turn += 1) answers.push(await onIt(request));
  return answers;
}

function remainingOf({ headers }: Answer): number {
  return Number(headers.get('x-ratelimit-remaining') ?? Number.NaN);
}

function inTime(answers: readonly Answer[]): void {
  const slowestMs = Math.max(...answers.map(({ tookMs }) => tookMs));
  assert.ok(slowestMs < servedWithinMs, `a request took ${slowestMs} ms`);
}
