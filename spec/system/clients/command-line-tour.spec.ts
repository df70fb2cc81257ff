// Types the commands of docs/guides/command-line-tour.md into a shell and compares their output with the page. Values that differ from run
// to run (ports, processes, identifiers, times) count as equal. UPDATE_TOUR=1 rewrites the page.

import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { Podman, startPodman } from '../../helpers/containers/podman.ts';
import { eventually } from '../../helpers/eventually.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { binPath } from '../../helpers/programs/program.ts';
import { suite } from '../../helpers/suite.ts';
import { Shell } from './shell.ts';

const test = suite('journey: the recorded session', { timeoutMs: 180_000 });
const PAGE = fileURLToPath(new URL('../../../docs/guides/command-line-tour.md', import.meta.url));
const SERVER = fileURLToPath(new URL('../../../node_modules/.bin/mcp-server-everything', import.meta.url));
const BLOCK = /(?<=^```console\n)[\s\S]*?(?=^```$)/gm;

const { engine, skip } = await startPodman();
test.after(() => engine?.close());

test.needs(engine, skip)('every command prints what docs/guides/command-line-tour.md shows', async () => {
  const page = await readFile(PAGE, 'utf8');
  const blocks = [...page.matchAll(BLOCK)].map(([block]) => block);
  assert.ok(blocks.length > 4, 'the page has blocks of commands');
  const ports = [await freePort(), await freePort(), await freePort()].map(String);
  const [gatewayPort = '', serverPort = '', containerPort = ''] = ports;
  const labels = { 'stagedoor.template': 'box', 'stagedoor.port': containerPort };
  await engine?.start(labels, Podman.node('spec/fixtures/http-server.ts', `--port=${containerPort}`));
  const shell = await Shell.open({ GATEWAY_PORT: gatewayPort, DOCKER_HOST: engine?.address ?? '' }, [
    // A gateway at another port than that of the page is named.
    ['" shows how', ` --url http://127.0.0.1:${gatewayPort}" shows how`],
    // Outside of the clone, its program is named by its path.
    ['"stagedoor ', `"node ${binPath} `],
    ['/usr/bin/node', process.execPath],
    ['/usr/lib/node_modules/stagedoor/bin/stagedoor.mjs', binPath],
    ['127.0.0.1:3002', `127.0.0.1:${containerPort}`],
    ['127.0.0.1:8080', `127.0.0.1:${gatewayPort}`],
    ['127.0.0.1:3001', `127.0.0.1:${serverPort}`],
  ]);
  const server = spawn(process.execPath, [SERVER, 'streamableHttp'], {
    env: { ...process.env, PORT: serverPort },
    stdio: 'ignore',
  });
  const seen: string[] = [];
  try {
    for (const block of blocks) {
      let text = '';
      for (const [, command = ''] of block.matchAll(/^\$ (.*)$/gm)) {
        // A reader types it again while the server of the container starts.
        const { text: answer } = await eventually(
          () => shell.type(command),
          (typed) => !typed.text.includes('starting'),
        );
        text += `$ ${command}\n${answer}`;
      }
      seen.push(text);
    }
  } finally {
    await shell.close();
    server.kill('SIGKILL');
  }
  if (process.env.UPDATE_TOUR)
    await writeFile(
      PAGE,
      page.replaceAll(BLOCK, () => seen.shift() ?? ''),
    );
  else assert.equal(seen.map(steady), blocks.map(steady));
});

test.run();

/** Replaces values that differ from run to run. */
function steady(text: string): string {
  return text
    .replaceAll(/sd_\w{16}_[\w-]+/g, 'KEY')
    .replaceAll(/\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, 'UUID')
    .replaceAll(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?Z?/g, 'TIME')
    .replaceAll(/\bbox-[0-9a-f]{8}\b/g, 'box-ID')
    .replaceAll(/\b[a-z]+_[a-z]+$/gm, 'NAME')
    .replaceAll(/\bprocess \d+/g, 'process N')
    .replaceAll(/\b\d+(\.\d+)? (m?s|min)\b/g, 'N s')
    .replaceAll(/ {2,}|-{2,}/g, '  ');
}
