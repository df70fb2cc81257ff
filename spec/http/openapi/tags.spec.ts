import * as assert from 'uvu/assert';
import { TAGS, tagOf } from '../../../src/http/openapi/document.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('the groups of operations');

test('follow the surfaces', () => {
  const cases = [
    ['/mcp', 'MCP'],
    ['/mcp/:template', 'MCP'],
    ['/mcp/:template/mcp', 'MCP'],
    ['/mcp/:template/sse', 'MCP'],
    ['/mcp/:template/messages', 'MCP'],
    ['/mcp/sse', 'MCP'],
    ['/mcp/:template/tools/call', 'Templates'],
    ['/mcp/:template/health', 'Templates'],
    ['/gateway/registry', 'Gateway'],
    ['/servers', 'Servers'],
    ['/servers/:server_id', 'Servers'],
    ['/tools/call', 'Servers'],
    ['/health', 'Servers'],
    ['/auth/users', 'Accounts'],
    ['/gateway/audit', 'Accounts'],
    ['/docs/assets/:file', 'Documents'],
    ['/openapi.json', 'Documents'],
    ['/', 'Documents'],
    ['/livez', 'Process'],
    ['/serversless', 'Process'],
  ];
  assert.equal(
    cases.map(([path = '']) => tagOf(path)),
    cases.map(([, tag]) => tag),
  );
});

test('have different names', () => {
  assert.is(new Set(TAGS.map(({ name }) => name)).size, TAGS.length);
});

test.run();
