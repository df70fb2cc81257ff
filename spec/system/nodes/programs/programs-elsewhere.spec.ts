// A program that one node runs, used at the other: two real gateways on one real PostgreSQL. Calls, sessions, conversations and drains
// cross; the death of its node is answered honestly, and its return is seen.

import { setTimeout as delay } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import { stdioServerPath } from '../../../fixtures/programs.ts';
import {
  type Answer,
  caller,
  callTool,
  field,
  listed,
  newKey,
  statusAndCode,
  toolText,
} from '../../../helpers/clients/caller.ts';
import { LegacyClient, ModernClient, requestText, textOf } from '../../../helpers/clients/mcp-client.ts';
import { becomes, untilStatus } from '../../../helpers/eventually.ts';
import { register } from '../../../helpers/programs/mcp-program.ts';
import { journey } from '../journey.ts';
import {
  accepted,
  capabilities,
  heardWithinMs,
  isServed,
  type McpNode,
  startNode,
  startPair,
} from '../mcp-nodes.ts';

const { test, onPostgresql, before, opened, database } = await journey('journey: programs of another node', {
  timeoutMs: 120_000,
});

/** A node is silent 3 s after a ping, and there is one a second; the rest is for slow machines. Not 15 s, as at the holder of a session. */
const endsWithinMs = 9_000;

let { a, b, options } = {} as Awaited<ReturnType<typeof startPair>>; // before the first test

before(async () => {
  ({ a, b, options } = await startPair(database, opened));
  await register(a.admin, 'near', [program('program', a)]);
  await register(a.admin, 'modern', [program('new', a, '--era=modern')]);
});

onPostgresql('a call over REST is answered by the program of the other node', async () => {
  const call = () => b.admin('POST /mcp/near/tools/call', { name: 'pid' });
  const pid = Number(toolText(await untilStatus(200, call, heardWithinMs)));
  assert.ok(a.program.descendants().includes(pid));
  assert.equal(b.program.descendants(), []);
  await becomes(async () => (await listed(b.admin))['near/program']?.state, 'healthy', heardWithinMs);
});

onPostgresql('clients of both eras, and those of all templates, use it at the other node', async () => {
  for (const [path, prefix] of [
    ['/mcp/near', ''],
    ['/mcp/modern', ''],
    ['/mcp', 'near__'],
    ['/mcp', 'modern__'],
  ] as const) {
    await isServed(b, path, options);
    const echo = [`${prefix}echo`, { text: 'h\u00e9' }] as const;
    const modern = new ModernClient(b.wire, path, options);
    assert.equal([path, textOf(await modern.call(...echo))], [path, 'h\u00e9']);
    const legacy = await LegacyClient.open(b.wire, path, options);
    assert.is(textOf(await legacy.call(...echo)), 'h\u00e9');
    const { notifications, result } = await legacy.call(
      `${prefix}progress`,
      { steps: 3, ms: 20 },
      { meta: { progressToken: 'p' } },
    );
    assert.equal([notifications.length, textOf({ result })], [3, 'did 3 steps']);
    assert.is((await legacy.call(`${prefix}fail`)).result?.isError, true);
    assert.is((await legacy.call(`${prefix}error`, { code: -32099 })).error?.code, -32099);
    assert.is(await legacy.close(), 200);
  }
});

onPostgresql('a session at the other node has a process of its own, which asks its client', async () => {
  const before = a.program.descendants().length;
  const countsBefore = await ownProcesses();
  const replies = { 'elicitation/create': () => ({ ...accepted }) };
  const client = await LegacyClient.open(b.wire, '/mcp/near', { ...options, replies });
  const own = Number(textOf(await client.call('pid')));
  const shared = Number(toolText(await a.admin('POST /mcp/near/tools/call', { name: 'pid' })));
  assert.is.not(own, shared);
  const opened = async () => {
    const { running, started } = await ownProcesses();
    return [running - countsBefore.running, started - countsBefore.started];
  };
  await becomes(opened, [1, 1], heardWithinMs); // by its node alone
  assert.ok(a.program.descendants().includes(own));
  const asking = { method: 'elicitation/create', params: { message: 'Who?', requestedSchema: {} } };
  const { asked, result } = await client.call('ask', asking);
  assert.equal(asked, ['elicitation/create']);
  assert.match(textOf({ result }), 'ada');
  const stream = await client.listen();
  await client.call('notify', { method: 'notifications/tools/list_changed' });
  await stream.sees(({ method }) => method === 'notifications/tools/list_changed');
  stream.close();
  assert.is(await client.close(), 200);
  await becomes(() => a.program.descendants().length, before, heardWithinMs);
});

onPostgresql('a revoked key loses its process and its call at the node of the program', async () => {
  const before = a.program.descendants().length;
  const { id, headers } = await newKey(a.admin, 'revoked');
  const client = await LegacyClient.open(b.wire, '/mcp/near', { capabilities, headers });
  const own = Number(textOf(await client.call('pid')));
  assert.ok(a.program.descendants().includes(own));
  const call = callTool(caller(b.url, headers), 'near', 'sleep', { ms: 60_000 });
  const inFlightThere = async () => {
    const { active_connections: counts } = Object(
      field(await a.admin('GET /gateway/stats'), 'load_balancer'),
    );
    return Object(counts).program;
  };
  await becomes(inFlightThere, 1, heardWithinMs);
  assert.is((await a.admin(`DELETE /auth/api-keys/${id}`)).status, 204);
  assert.is((await call).status, 401);
  await becomes(inFlightThere, 0, heardWithinMs);
  await becomes(() => a.program.descendants().length, before, heardWithinMs);
});

onPostgresql('a session with programs of one node opens there, if that node takes sessions', async () => {
  const lifeOf = async ({ id }: McpNode) => {
    const nodes: unknown[] = Object((await b.admin('GET /gateway/nodes')).body).nodes;
    return Object(nodes.find((node) => Object(node).id === id && Object(node).state !== 'ended')).life;
  };
  const openedAt = async (path: string) => {
    const session = await LegacyClient.open(b.wire, path, options);
    const { result } = await session.call(path === '/mcp' ? 'near__echo' : 'echo', { text: 'there' });
    assert.is(textOf({ result }), 'there');
    const id = String(session.headers['Mcp-Session-Id']);
    assert.is(await session.close(), 200);
    return id.slice(0, 8);
  };
  assert.is(await openedAt('/mcp/near'), await lifeOf(a));
  assert.is(await openedAt('/mcp/modern'), await lifeOf(a));
  assert.is(await openedAt('/mcp'), await lifeOf(b));
  await b.admin(`POST /gateway/nodes/${a.id}/drain`);
  assert.is(await openedAt('/mcp/near'), await lifeOf(b), 'a node that drains takes none');
  await b.admin(`POST /gateway/nodes/${a.id}/resume`);
  await becomes(() => openedAt('/mcp/near'), await lifeOf(a), heardWithinMs);
});

onPostgresql(
  'a request takes two hops: to the owner of its session, then to the node of the program',
  async () => {
    // All templates: the session belongs to the other node, the program to the one that gets the request.
    const session = await LegacyClient.open(b.wire, '/mcp', options);
    const { headers } = session;
    const body = requestText(7, 'tools/call', { name: 'near__echo', arguments: { text: 'twice' } });
    const { status, messages } = await a.wire.exchange('/mcp', { headers, body });
    assert.equal([status, textOf({ result: messages.at(-1)?.result })], [200, 'twice']);
    assert.is(await session.close(), 200);
  },
);

onPostgresql('a call is cancelled at the program when its client leaves', async () => {
  const call = new ModernClient(b.wire, '/mcp/modern', { ...options, withinMs: 500 }).call('sleep', {
    ms: 20_000,
  });
  await call.catch(() => undefined);
  const cancelled = async () => {
    const body = await b.admin('POST /mcp/modern/tools/call', { name: 'cancelled' });
    return JSON.parse(toolText(body)).length > 0;
  };
  await becomes(cancelled, true, heardWithinMs);
});

onPostgresql('a large result crosses byte by byte', async () => {
  const text = 'x'.repeat(3_000_000);
  const answer = await b.admin('POST /mcp/near/tools/call', { name: 'echo', arguments: { text } });
  assert.is(toolText(answer), text);
});

onPostgresql('a drain, a restart and a new list at its node are seen at the other', async () => {
  const state = async () => (await listed(b.admin))['near/program']?.state;
  assert.is((await a.admin('POST /gateway/instances/near/program/drain')).status, 200);
  await becomes(state, 'draining', heardWithinMs);
  assert.is((await b.admin('POST /mcp/near/tools/call', { name: 'pid' })).status, 503);
  assert.is((await a.admin('POST /gateway/instances/near/program/resume')).status, 200);
  await becomes(state, 'healthy', heardWithinMs);
  const pid = toolText(await b.admin('POST /mcp/near/tools/call', { name: 'pid' }));
  assert.is((await a.admin('POST /gateway/instances/near/program/restart')).status, 200);
  const other = async () => {
    const { status, body } = await b.admin('POST /mcp/near/tools/call', { name: 'pid' });
    return status === 200 && toolText({ status, body } as Parameters<typeof toolText>[0]) !== pid;
  };
  await becomes(other, true, heardWithinMs);
});

onPostgresql(
  'its node freezes: calls end soon or go on elsewhere, and are served again after it',
  async () => {
    await register(a.admin, 'both', [program('far', a)]);
    await register(b.admin, 'both', [program('own', b)]);
    await becomes(async () => (await listed(b.admin))['both/far']?.state, 'healthy', heardWithinMs);
    const near = () => b.admin('POST /mcp/near/tools/call', { name: 'pid' });
    await untilStatus(200, near, heardWithinMs);
    const inFlight = async () => field(await b.admin('GET /gateway/stats'), 'active_connections');
    assert.is((await b.admin('POST /gateway/instances/both/own/drain')).status, 200);
    const safe = b.admin('POST /mcp/both/tools/call', { name: 'sleep', arguments: { ms: 6_000 } });
    const unsafe = b.admin('POST /mcp/near/tools/call', { name: 'count', arguments: { ms: 20_000 } });
    await becomes(inFlight, 2, heardWithinMs);
    assert.is((await b.admin('POST /gateway/instances/both/own/resume')).status, 200);
    a.program.signal('SIGSTOP');

    const began = await near();
    assert.is(began.status, 503);
    const failed = await unsafe;
    assert.equal([failed.status, field(failed, 'delivered')], [503, 'unknown']);
    for (const { tookMs } of [began, failed]) assert.ok(tookMs < endsWithinMs, `${tookMs} ms`);
    const repeated = await safe;
    assert.equal(
      [repeated.status, repeated.headers.get('x-instance-id'), toolText(repeated)],
      [200, 'own', 'slept 6000'],
    );
    await isRefusedUntil(near, () => true);
    a.program.signal('SIGCONT');
    const pid = Number(toolText(await untilStatus(200, near, heardWithinMs)));
    assert.ok(a.program.descendants().includes(pid));

    // Longer than its life lasts: it goes on under another one.
    a.program.signal('SIGSTOP');
    assert.is((await near()).status, 503);
    const hasEnded = async () => {
      const nodes = Object((await b.admin('GET /gateway/nodes')).body).nodes as readonly object[];
      return nodes.some((node) => Object(node).state !== 'live' && Object(node).state !== 'silent');
    };
    await isRefusedUntil(near, hasEnded);
    a.program.signal('SIGCONT');
    assert.is(toolText(await untilStatus(200, near, heardWithinMs)), String(pid));
  },
);

onPostgresql('its node dies: calls fail honestly, and go on when it is back', async () => {
  const flying = b.admin('POST /mcp/near/tools/call', { name: 'count', arguments: { ms: 20_000 } });
  const carried = async () => field(await b.admin('GET /gateway/stats'), 'active_connections');
  await becomes(carried, 1, heardWithinMs);
  a.program.signal('SIGKILL');
  await a.program.end();
  const failed = await flying;
  assert.equal([failed.status, field(failed, 'delivered')], [503, 'unknown']);
  const call = () => b.admin('POST /mcp/near/tools/call', { name: 'pid' });
  const refused = await untilStatus(503, call, heardWithinMs);
  assert.equal(
    [statusAndCode(refused), refused.headers.has('retry-after')],
    [[503, 'NO_HEALTHY_INSTANCE'], true],
  );
  const again = await startNode(database, { port: a.port });
  opened.unshift(again.remove);
  const pid = Number(toolText(await untilStatus(200, call, 20_000)));
  assert.ok(again.program.descendants().includes(pid));
});

test.run();

/** Of the deployment. */
async function ownProcesses(): Promise<{ readonly running: number; readonly started: number }> {
  return Object(field(await b.admin('GET /gateway/stats'), 'own_processes'));
}

/** Sends calls one after the other, for 5 s at least and until this is so: each is refused soon. */
async function isRefusedUntil(
  ask: () => Promise<Answer>,
  isOver: () => boolean | Promise<boolean>,
): Promise<void> {
  const beganMs = performance.now();
  do {
    const refused = await ask();
    assert.equal(
      [statusAndCode(refused), refused.headers.has('retry-after')],
      [[503, 'NO_HEALTHY_INSTANCE'], true],
    );
    assert.ok(refused.tookMs < endsWithinMs, `${refused.tookMs} ms`);
    await delay(200);
    assert.ok(performance.now() - beganMs < 30_000, 'still not over');
  } while (performance.now() - beganMs < 5_000 || !(await isOver()));
}

function program(id: string, { id: node }: McpNode, ...flags: string[]) {
  return { id, node, command: process.execPath, args: [stdioServerPath, ...flags] };
}
