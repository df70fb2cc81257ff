// Calls over HTTP wear the headers that their tool asks for, whoever makes them. What becomes of those that miss one is
// http-missed-headers.spec.ts.

import * as assert from 'uvu/assert';
import { suite } from '../../helpers/suite.ts';
import { CALL, callWith, outcomeOf, REGION, tool, withBackend } from './tool-headers-harness.ts';

const test = suite('http tool headers');

test('are added to a call when the tool was listed', async () => {
  await withBackend(async (transport, backend) => {
    const bad = tool('bad', { a: { type: 'array', 'x-mcp-header': 'A' } });
    backend.pages = [[tool('one', { region: REGION }), bad]];
    assert.equal(await outcomeOf(transport, { method: 'tools/list' }), {
      tools: [tool('one', { region: REGION })],
    });
    await outcomeOf(transport);
    assert.equal(backend.regions, ['x']);
  });
});

test('that the caller wrote himself stay as they are', async () => {
  await withBackend(async (transport, backend) => {
    await outcomeOf(transport, { method: 'tools/list' });
    backend.refuses = () => true;
    const code = await outcomeOf(transport, { ...CALL, headers: { 'mcp-param-region': '=?base64?eA==?=' } });
    assert.equal([code, backend.regions, backend.lists], [-32020, ['=?base64?eA==?='], 1]);
  });
});

test('that would be too large for a server are an answer, and the call goes nowhere', async () => {
  await withBackend(async (transport, backend) => {
    backend.refuses = (headers) => headers['mcp-param-region'] === undefined;
    const large = callWith({ region: 'x'.repeat(20_000) });
    assert.is(await outcomeOf(transport, large), -32602);
    assert.equal([backend.regions, backend.lists], [[undefined], 1]);
    assert.is(await outcomeOf(transport, large), -32602);
    assert.equal([backend.regions, backend.lists], [[undefined], 1]);
    assert.equal(await outcomeOf(transport, callWith({ region: 'x'.repeat(7_000) })), { content: [] });
  });
});

test('that a server finds too large are an answer, whoever wrote them', async () => {
  await withBackend(async (transport, backend) => {
    await outcomeOf(transport, { method: 'tools/list' });
    backend.onCall = (response) => response.writeHead(431).end();
    const own = { 'mcp-param-region': 'x' };
    assert.equal(
      [await outcomeOf(transport), await outcomeOf(transport, { ...CALL, headers: own })],
      [-32602, -32602],
    );
    assert.match(String(await outcomeOf(transport, callWith({}))), 'BACKEND_UNAVAILABLE');
  });
});

test.run();
