// The steps of a newcomer: start the demo, paste its calls, press Ctrl-C.

import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { canFindProcesses } from '../../helpers/programs/processes.ts';
import { AS_IT_COMES, Program } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';

const test = suite('journey: demo', { timeoutMs: 60_000 });
let demo: Program;
test.before.each(() => {
  demo = new Program(['gateway', 'start', '--demo', '--port', '0'], { env: AS_IT_COMES });
});
test.after.each(() => demo.remove());

test('starts real servers, prints calls that work when pasted, and leaves nothing after Ctrl-C', async () => {
  await demo.sees(/5 of 5 servers are healthy/, 30_000);
  for (const id of ['everything-1', 'everything-2', 'filesystem-1', 'memory-1']) {
    assert.match(demo.out, new RegExp(`^${id} +healthy after \\d+\\.\\d s \\(stdio\\)$`, 'm'));
  }
  assert.match(demo.out, /^everything-3 +healthy after \d+\.\d s \(Streamable HTTP\)$/m);
  await demo.sees(/Ctrl-C stops/);

  const lines = demo.out.split('\n').filter((line) => line.startsWith('curl'));
  assert.is(lines.length, 3);
  const [listed = '', called = '', followed = ''] = lines.map(paste);
  const tools: { name: string }[] = JSON.parse(listed).tools;
  assert.ok(tools.some(({ name }) => name === 'echo'));
  assert.is(JSON.parse(called).content[0].text, 'Echo: hello');
  assert.match(followed, 'notifications/progress');
  assert.match(followed, 'Long running operation completed');

  // Three calls in turn reach all three instances, over both transports.
  const served = [1, 2, 3].map(() => paste(`${lines[1]} -o /dev/null -D -`));
  const instances = served.map((headers) => /^x-instance-id: (.*)$/im.exec(headers)?.[1]?.trim());
  assert.equal(instances.sort(), ['everything-1', 'everything-2', 'everything-3']);

  assert.match(demo.out, /^http:\S+\/mcp\/notes$/m);
  const ofView: { name: string }[] = JSON.parse(
    paste(String(lines[0]).replace('/mcp/everything/', '/mcp/notes/')),
  ).tools;
  const names = ofView.map(({ name }) => name);
  assert.ok(names.includes('read_text_file') && names.includes('read_graph'), names.join());
  assert.not.ok(names.includes('write_file'));

  // The calls need the key, which is not in the log.
  const [, key = ''] = / -H 'X-API-Key: (sd_[^']+)'/.exec(lines[0] ?? '') ?? [];
  assert.match(demo.out, `\nexport STAGEDOOR_API_KEY=${key}\n`);
  const refused = JSON.parse(paste(String(lines[0]).replace(key, 'sd_0123456789abcdef_wrong')));
  assert.is(refused.error_code, 'INVALID_CREDENTIALS');
  assert.match(demo.out, /^database memory:\/\/: in memory, lost when the gateway stops$/m);
  assert.not.match(demo.err, key);

  assert.is(scratchFolders().length, 1);
  if (canFindProcesses) assert.is(demo.descendants().length, 5);

  demo.signal('SIGINT');
  assert.equal(await demo.end(), { code: 0, signal: null });
  assert.match(demo.out, /stopping after SIGINT/);
  if (canFindProcesses) assert.equal(await demo.survivors(), []);
  assert.equal(scratchFolders(), []);
  const url = /listening on (\S+)/.exec(demo.out)?.[1];
  assert.is(spawnSync('curl', ['-s', `${url}/livez`]).status, 7, 'nothing listens any more');
});

test.run();

/** Runs a line unchanged in a shell, and returns its output. */
function paste(line: string): string {
  const { status, stdout, stderr } = spawnSync(line, { shell: true, encoding: 'utf8', timeout: 20_000 });
  assert.is(status, 0, stderr);
  return stdout;
}

function scratchFolders(): string[] {
  return readdirSync(demo.home).filter((name) => name.startsWith('stagedoor-demo-'));
}
