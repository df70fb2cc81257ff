// That the lines work is proven by pasting them: spec/system/journeys/demo.spec.ts. Here is how they are written.

import * as assert from 'uvu/assert';
import { demoCalls } from '../../src/cli/demo.ts';
import { suite } from '../helpers/suite.ts';

const test = suite('demo calls');
const url = 'http://127.0.0.1:8080';
const all = new Set(['everything', 'memory']);

test('are three lines for a POSIX shell, bodies in single quotes', () => {
  const calls = demoCalls({ url, folder: '/scratch', apiKey: undefined, healthy: all, platform: 'linux' });
  assert.equal(
    calls.map(({ line, file }) => [line, file]),
    [
      [`curl -s ${url}/mcp/everything/tools/list`, undefined],
      [
        `curl -s ${url}/mcp/everything/tools/call -H 'Content-Type: application/json' ` +
          `-d '{"name":"echo","arguments":{"message":"hello"}}'`,
        undefined,
      ],
      [
        `curl -sN ${url}/mcp/everything/tools/call -H 'Content-Type: application/json' ` +
          `-H 'Accept: text/event-stream' ` +
          `-d '{"name":"trigger-long-running-operation","arguments":{"duration":3,"steps":3}}'`,
        undefined,
      ],
    ],
  );
});

test('take their bodies from files on Windows, so that no quote is inside quotes', () => {
  const options = { url, folder: 'scratch', healthy: all, platform: 'win32' } as const;
  const [listed, called] = demoCalls({ ...options, apiKey: undefined });
  assert.is(listed?.line, `curl.exe -s ${url}/mcp/everything/tools/list`);
  assert.equal(called?.file?.body, '{"name":"echo","arguments":{"message":"hello"}}');
  assert.match(String(called?.line), / -H "Content-Type: application\/json" -d "@scratch.echo\.json"$/);
  const [guarded] = demoCalls({ ...options, apiKey: 'sd_1' });
  assert.is(guarded?.line, `curl.exe -s ${url}/mcp/everything/tools/list -H "X-API-Key: sd_1"`);
});

test('carry the key when there is one, all of them', () => {
  const calls = demoCalls({ url, folder: '/scratch', apiKey: 'sd_1', healthy: all, platform: 'linux' });
  assert.is(calls.length, 3);
  for (const { line } of calls) assert.match(line, / -H 'X-API-Key: sd_1'( |$)/);
});

test('go only to templates that are healthy', () => {
  const lines = (...healthy: string[]) =>
    demoCalls({
      url,
      folder: '/scratch',
      apiKey: undefined,
      healthy: new Set(healthy),
      platform: 'linux',
    }).map(({ line }) => line);
  assert.equal(lines('memory'), [`curl -s ${url}/mcp/memory/tools/list`]);
  assert.equal(lines(), []);
});

test.run();
