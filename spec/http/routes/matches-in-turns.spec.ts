// Routes that show tools to a caller with `tools`: the names of long lists are matched in tasks, not all in the turn of the request.

import * as assert from 'uvu/assert';
import { ToolRights } from '../../../src/domain/accounts/rights.ts';
import { Gateway } from '../../../src/gateway/gateway.ts';
import type { Credentials } from '../../helpers/http/accounts.ts';
import { suite } from '../../helpers/suite.ts';
import { type Doors, openDoors } from './doors.ts';

const test = suite('matches of routes', { timeoutMs: 60_000 });

const TOOLS = 3_000;
const NAME = 'tool_'.padEnd(60, 'x');
/** More than the tasks of one turn match: 25 of 1,024 characters. */
const MAX_AT_ONCE = 500;
const inputSchema = { type: 'object' };

let doors: Doors;
let limited: Credentials;
test.before(async () => {
  doors = await openDoors();
  const { app } = doors;
  const tools: Record<string, unknown>[] = [{ name: 'first', inputSchema }];
  await doors.serve(tools);
  await app.as(app.admin, 'PATCH', '/gateway/templates/files', { body: { approve: 'pinned' } });
  const body = { from: [{ template: 'files' }] };
  assert.is((await app.as(app.admin, 'PUT', '/gateway/views/desk', { body })).status, 201);
  // They wait for approval from their first list on.
  for (let index = 0; index < TOOLS; index += 1) tools.push({ name: `${NAME}${1_000 + index}`, inputSchema });
  await doors.listed('files');
  const { accounts } = app.auth;
  const permissions = ['gateway:read', 'gateway:write', 'tools:call'] as const;
  const { key } = await accounts.createApiKey({ name: 'limited', permissions, tools: ['files/*x*1*'] });
  limited = { 'x-api-key': key };
});
test.after(() => doors.close());

const { allow } = ToolRights.prototype;
test.after.each(() => {
  ToolRights.prototype.allow = allow;
});

/** Counts the names that are matched, and those without anything in between. */
function watched() {
  const seen = { all: 0, mostAtOnce: 0 };
  let atOnce = 0;
  ToolRights.prototype.allow = function (...call) {
    if (atOnce === 0)
      process.nextTick(() => {
        atOnce = 0;
      });
    atOnce += 1;
    seen.all += 1;
    seen.mostAtOnce = Math.max(seen.mostAtOnce, atOnce);
    return allow.apply(this, call);
  };
  return seen;
}

for (const [method, path] of [
  ['GET', '/mcp/files/health'],
  ['GET', '/gateway/registry'],
  ['GET', '/gateway/templates/files/tools'],
  ['GET', '/gateway/views/desk/tools'],
] as const) {
  test(`${method} ${path} matches few names in a turn`, async () => {
    const seen = watched();
    const { status, text } = await doors.app.as(limited, method, path);
    assert.is(status, 200);
    assert.match(text, `${NAME}1111`);
    assert.ok(seen.all >= TOOLS / 2, `${seen.all} were matched`);
    assert.ok(seen.mostAtOnce <= MAX_AT_ONCE, `${seen.mostAtOnce} at once`);
  });
}

test('GET /gateway/registry makes the records of few templates in a turn', async () => {
  const { app } = doors;
  for (let index = 0; index < 200; index += 1)
    await app.gateway.register(`t${index}`, { id: 'a', handler: () => ({}) });
  const { servers } = Gateway.prototype;
  const seen = { all: 0, mostAtOnce: 0 };
  let atOnce = 0;
  Gateway.prototype.servers = function (...call) {
    if (atOnce === 0)
      setImmediate(() => {
        atOnce = 0;
      });
    atOnce += servers.apply(this, call).length;
    seen.all += 1;
    seen.mostAtOnce = Math.max(seen.mostAtOnce, atOnce);
    return servers.apply(this, call);
  };
  try {
    const { status, text } = await app.as(app.admin, 'GET', '/gateway/registry');
    assert.is(status, 200);
    const { templates, stats } = JSON.parse(text);
    const names = Object.keys(templates);
    assert.equal([names, stats.total_templates, stats.total_instances], [names.toSorted(), 201, 201]);
    assert.ok(seen.mostAtOnce <= 50, `${seen.mostAtOnce} at once`);
  } finally {
    Gateway.prototype.servers = servers;
  }
});

test.run();
