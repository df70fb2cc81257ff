// `doctor` with a server: a template at a gateway, a command of its own, and wrong input.

import { writeFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { folderOfEach } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { complaint, gatewayFor } from './against-gateway.ts';

const test = suite('doctor of a server', { timeoutMs: 60_000 });
const folder = folderOfEach(test);
const gateway = gatewayFor(test);

/** A program that prints a banner, sends ids as texts and has a tool with an odd name. */
const PROGRAM = `
console.log('Odd server 1.0 is ready');
const RESULTS = {
  initialize: { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo: { name: 'odd', version: '1' } },
  ping: {},
  'tools/list': { tools: [{ name: 'an odd name', inputSchema: { type: 'object' } }] },
};
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  const answer = RESULTS[method] ? { result: RESULTS[method] } : { error: { code: -32601, message: 'unknown' } };
  console.log(JSON.stringify({ jsonrpc: '2.0', id: String(id), ...answer }));
});`;

test('a command is examined by the command line itself, and its faults are named', async () => {
  writeFileSync(folder('odd.cjs'), PROGRAM);
  const words = ['--', process.execPath, folder('odd.cjs')];
  const { code, out, err, progress } = await gateway.run('doctor', ...words);
  assert.equal([code, err], [1, 'waiting up to 60 s until the server is open'], out);
  assert.ok(progress?.includes('waiting until it is open: 0 of 60 s'), String(progress));
  assert.match(out, /odd\.cjs: legacy era, 1 tool$/m);
  assert.match(
    out,
    /^ {2}unsafe-name: an odd name: many clients refuse this name\.\n {4}use letters, digits/m,
  );
  assert.match(out, /^ {2}stdout-text: It wrote 1 line to standard output that is not JSON-RPC\./m);
  assert.match(out, /^ {2}id-as-text: /m);
  const report = JSON.parse((await gateway.run('doctor --json', ...words)).out);
  assert.equal([report.ok, report.instances[0].era], [false, 'legacy']);
});

test('a template is examined by its gateway', async () => {
  const handler = ({ method }: { method: string }) =>
    method === 'tools/list' ? { tools: [{ name: 'good', inputSchema: { type: 'object' } }] } : {};
  await gateway.server.gateway.register('good', { id: 'one', handler }, { waitMs: 5_000 });
  const good = await gateway.run('doctor good');
  assert.equal([good.code, /no fault was found/.test(good.out)], [0, true], good.out);
  await gateway.server.gateway.register('away', { id: 'two', endpoint: 'http://127.0.0.1:1/mcp' });
  const away = await gateway.run('doctor away');
  assert.is(away.code, 1);
  assert.match(away.out, /^two: not open\n {2}no-era: It is not open.*\n {4}start it; answer/m);
  assert.match((await gateway.run('doctor none')).err, /none/);
});

test('a URL that does not answer is a fault, and two servers are refused', async () => {
  const away = await gateway.run('doctor http://127.0.0.1:1/mcp --wait 10');
  assert.equal([away.code, /no-era/.test(away.out)], [1, true], away.out + away.err);
  for (const words of [['one', '--', 'node'], ['--']])
    assert.is((await gateway.run('doctor', ...words)).code, 2, words.join(' '));
});

test('options of a server that is examined here are refused for others', async () => {
  for (const line of ['--header A=1', '--wait 5', 'good --header A=1', 'good --wait 5'])
    assert.match(await complaint(gateway.run(`doctor ${line}`), 2), / is for a server at a URL/);
  const words = ['--', process.execPath, folder('odd.cjs')];
  assert.match(await complaint(gateway.run('doctor --header A=1', ...words), 2), /--header is for/);
});

test.run();
