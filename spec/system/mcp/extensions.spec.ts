// A program that offers a tool only to clients that declare extensions, as MCP Apps programs do, at every door of the endpoint, with
// real processes: who gets which tools, and from which process.

import * as assert from 'uvu/assert';
import { ANONYMOUS } from '../../../src/domain/accounts/principal.ts';
import type { JsonObject } from '../../../src/domain/json/json.ts';
import { createGateway, type Gateway } from '../../../src/gateway/gateway.ts';
import { modernRequest, openSession, postTo } from '../../gateway/mcp/post.ts';
import { suite } from '../../helpers/suite.ts';
import { KEY } from '../../protocol/modern/modern-harness.ts';
import { fixture } from '../../transports/stdio/open-stdio.ts';

const test = suite('journey: extensions', { timeoutMs: 60_000 });
const UI: JsonObject = { extensions: { 'io.modelcontextprotocol/ui': {} } };
const OTHER: JsonObject = { extensions: { 'com.example/other': {} } };
let gateway: Gateway;

test.before.each(async () => {
  gateway = await createGateway({});
});
test.after.each(() => gateway.close({ graceMs: 0 }));

const DOORS = [
  { name: 'legacy', template: 'a', prefix: '' },
  { name: 'modern', template: 'a', prefix: '' },
  { name: 'legacy aggregate', template: undefined, prefix: 'a__' },
  { name: 'modern aggregate', template: undefined, prefix: 'a__' },
] as const;

for (const era of ['legacy', 'dual'] as const) {
  for (const { name, template, prefix } of DOORS) {
    test(`${name} clients of a ${era} program`, async () => {
      const { command, args } = fixture(`--era=${era}`);
      await gateway.register('a', { id: 'one', command, args: [...args] }, { waitMs: 30_000 });
      const plain = await client({}, name, template);
      const [one, two] = [await client(UI, name, template), await client(UI, name, template, 'user:bob')];
      const other = await client(OTHER, name, template);
      for (const [ask, expected] of [
        [plain, false],
        [one, true],
        [two, true],
        [other, true],
      ] as const) {
        const { tools } = await ask('tools/list', {});
        const names = (tools as { name: string }[]).map((tool) => tool.name);
        assert.is(names.includes(`${prefix}page`), expected);
      }
      const pid = async (ask: typeof plain) => (await ask('tools/call', { name: `${prefix}pid` })).content;
      const pids: string[] = [];
      for (const ask of [plain, one, two, other]) pids.push(JSON.stringify(await pid(ask)));
      const isOneProcess = era === 'dual' && name.startsWith('modern');
      const expected = isOneProcess ? [0, 0, 0, 0] : [0, 1, 1, 3];
      assert.equal(
        pids.map((each) => pids.indexOf(each)),
        expected,
      );
      const callTool = await one('tools/call', { name: `${prefix}page` });
      assert.is(JSON.stringify(callTool.content).includes('page of '), true);
    });
  }
}

test.run();

/** Sends requests as one client with these capabilities, and returns their results. */
async function client(capabilities: JsonObject, era: string, template: string | undefined, id = 'user:ann') {
  const principal = { ...ANONYMOUS, id };
  const headers = era.startsWith('legacy')
    ? await openSession(gateway, template, principal, capabilities)
    : undefined;
  return async (method: string, params: JsonObject): Promise<JsonObject> => {
    const request =
      headers === undefined
        ? modernRequest(method, params, { [KEY.capabilities]: capabilities })
        : { message: { method, params }, headers };
    const { answer } = await postTo(gateway, { template, principal, ...request });
    assert.ok(answer.result, JSON.stringify(answer));
    return Object(answer.result);
  };
}
