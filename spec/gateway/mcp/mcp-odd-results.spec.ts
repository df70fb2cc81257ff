// Results of servers that are not objects: SDK clients take such a message for none and wait until their own timeout, so that
// callers get an error instead. With servers of both eras, over HTTP and as programs.

import { text } from 'node:stream/consumers';
import * as assert from 'uvu/assert';
import { LegacyClient, ModernClient } from '../../helpers/clients/mcp-client.ts';
import { Wire } from '../../helpers/clients/mcp-wire.ts';
import { appFor, startApp } from '../../helpers/http/app.ts';
import { suite } from '../../helpers/suite.ts';
import { type RawServer, startRawServer } from '../../transports/raw-server.ts';

const test = suite('results that are not objects', { timeoutMs: 60_000 });
const app = appFor(test, () => startApp());
const servers: RawServer[] = [];
test.after(() => Promise.all(servers.splice(0).map((server) => server.close())));

const RESULTS = {
  null: 'null',
  'a string': '"text"',
  'a number': '7',
  'an array': '[{}]',
  'a boolean': 'false',
};
const ERAS = ['legacy', 'modern'] as const;

/** The line that answers a line. The cursor of a list, the name of a tool, is the odd result. */
const ANSWERER = `
  function answerTo(line, era, fixed) {
    const { id, method, params = {} } = JSON.parse(line);
    if (id === undefined) return undefined;
    const about = { capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } };
    const results = {
      initialize: { protocolVersion: '2025-11-25', ...about },
      ...(era === 'modern' ? { 'server/discover': { resultType: 'complete', supportedVersions: ['2026-07-28'], ...about } } : {}),
      ping: {},
      'tools/list': { resultType: 'complete', tools: [{ name: 'null', inputSchema: { type: 'object' } }] },
    };
    const odd = fixed[method] ?? (method === 'tools/call' ? params.name : params.cursor);
    const result = odd ?? (results[method] && JSON.stringify(results[method]));
    const said = result === undefined ? '"error":{"code":-32601,"message":"no"}' : '"result":' + result;
    return '{"jsonrpc":"2.0","id":' + JSON.stringify(id) + ',' + said + '}';
  }`;
const PROGRAM = `${ANSWERER}
  const [, era, fixed] = process.argv;
  require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const answer = answerTo(line, era, JSON.parse(fixed));
    if (answer !== undefined) console.log(answer);
  });`;
const answerTo: (line: string, era: string, fixed: Record<string, string>) => string | undefined =
  new Function(`${ANSWERER}; return answerTo;`)();

/** Registers such a server as a program and over HTTP; `fixed`: the results of methods as text. */
async function serve(template: string, era: string, fixed: Record<string, string> = {}): Promise<string[]> {
  const server = await startRawServer(async (request, response) => {
    const answer = request.method === 'POST' ? answerTo(await text(request), era, fixed) : undefined;
    response.writeHead(answer === undefined ? 202 : 200, { 'content-type': 'application/json' }).end(answer);
  });
  servers.push(server);
  const program = {
    command: process.execPath,
    args: ['-e', PROGRAM, era, JSON.stringify(fixed)],
    force: true,
  };
  await app.gateway.register(`${template}-http`, { id: 'i', endpoint: server.url }, { waitMs: 20_000 });
  await app.gateway.register(`${template}-program`, { id: 'i', ...program }, { waitMs: 20_000 });
  return [`${template}-http`, `${template}-program`];
}

for (const era of ERAS) {
  test(`become errors of calls and of lists (${era} servers)`, async () => {
    const wire = new Wire(app.url);
    for (const template of await serve(era, era)) {
      const clients = [
        await LegacyClient.open(wire, `/mcp/${template}`),
        new ModernClient(wire, `/mcp/${template}`),
      ];
      for (const [kind, result] of Object.entries(RESULTS)) {
        const error = { code: -32603, message: `The result of the server is ${kind}, not an object.` };
        for (const client of clients)
          assert.equal(
            (await client.ask('tools/call', { name: result, arguments: {} })).error,
            error,
            template,
          );
      }
      const error = { code: -32603, message: 'The result of the server is null, not an object.' };
      const aggregated = [await LegacyClient.open(wire, '/mcp'), new ModernClient(wire, '/mcp')];
      for (const client of aggregated)
        assert.equal(
          (await client.ask('tools/call', { name: `${template}__null`, arguments: {} })).error,
          error,
        );
      const { status, body } = await app.ask('POST', `/mcp/${template}/tools/call`, {
        body: { name: 'null', arguments: {} },
      });
      assert.equal([status, body.error_code, body.backend_error], [500, 'TOOL_EXECUTION_FAILED', error]);
    }
    wire.close();
  });

  test(`become errors of first pages (${era} servers)`, async () => {
    const wire = new Wire(app.url);
    for (const template of await serve(`page-${era}`, era, { 'tools/list': 'null' })) {
      const error = { code: -32603, message: 'The result of the server is null, not an object.' };
      for (const client of [
        await LegacyClient.open(wire, `/mcp/${template}`),
        new ModernClient(wire, `/mcp/${template}`),
      ])
        assert.equal((await client.ask('tools/list')).error, error, template);
      const { status, body } = await app.ask('GET', `/mcp/${template}/tools/list`);
      assert.equal([status, body.error_code], [500, 'TOOL_EXECUTION_FAILED'], JSON.stringify(body));
    }
    wire.close();
  });
}

test('of server/discover are those of a server of the legacy era', async () => {
  for (const [at, result] of Object.values(RESULTS).entries())
    for (const template of await serve(`discover-${at}`, 'modern', { 'server/discover': result }))
      assert.is(app.gateway.instance(template, 'i').snapshot.era, 'legacy', `${template} ${result}`);
});

test.run();
