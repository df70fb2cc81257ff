// Two real gateways count the requests of a key together in a real Redis. While Redis is gone, requests are still served;
// afterwards they are counted together again. A silent Redis: databases/redis-counter.spec.ts.

import * as assert from 'uvu/assert';
import { type Answer, type Caller, caller, newKey, statusAndCode } from '../../helpers/caller.ts';
import { eventually } from '../../helpers/eventually.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { type McpHarness, startGuarded } from '../../helpers/mcp-program.ts';
import { serverLine } from '../../helpers/server-line.ts';
import { redis } from '../../helpers/services.ts';
import { suite } from '../../helpers/suite.ts';

const server = await redis();
const test = suite('journey: shared limits', { timeoutMs: 90_000 });
const withRedis = test.needs(server.url, server.skip);

const keyLimit = 60;
/** Redis accepts any password for a user without one; this password must not appear anywhere. */
const plantedPassword = 'planted-redis-password';
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
  const address = new URL(line.url);
  address.username ||= 'default';
  address.password ||= plantedPassword;
  const redisUrl = address.href;
  // In sequence: the first creates the secret and the admin.
  const one = await start('one', redisUrl);
  const other = await start('other', redisUrl);

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

  // Concurrent requests on both, a third over the limit: the limit of both together is the limit of one.
  const attempts = (keyLimit * 4) / 3;
  const statuses = await eventually(
    async () => {
      const both = await keyOnBoth([one, other]);
      const asked = Array.from({ length: attempts }, (_, turn) => both[turn % 2]?.(request));
      const answers = (await Promise.all(asked)).filter((answer) => answer !== undefined);
      for (const refused of answers.filter(({ status }) => status !== 200)) {
        assert.equal(statusAndCode(refused), [429, 'RATE_LIMIT_EXCEEDED']);
        assert.ok(Number(refused.headers.get('retry-after')) > 3_500);
      }
      return answers.map(({ status }) => status).toSorted();
    },
    (seen) => seen.filter((status) => status === 200).length === keyLimit,
    togetherWithinMs,
  );
  assert.equal(
    statuses,
    Array.from({ length: attempts }, (_, turn) => (turn < keyLimit ? 200 : 429)),
  );
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

  // Nothing of the URL is in the log, which is complete at the end.
  for (const { program } of [one, other]) {
    program.signal('SIGTERM');
    assert.equal(await program.end(), { code: 0, signal: null });
    const { out, err } = program;
    assert.not.match(out + err, address.password);
    assert.not.match(out + err, /rediss?:/);
    assert.not.match(out + err, `:${address.port}`);
  }
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
