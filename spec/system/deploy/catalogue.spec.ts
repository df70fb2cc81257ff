// Every template of the catalogue: started by the gateway as its file defines, listed, and called once. npx downloads packages
// that are not installed beside stagedoor.

import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { loadConfig } from '../../../src/config/config.ts';
import { startServer } from '../../../src/server/server.ts';
import { readCatalogue } from '../../../src/templates/catalogue.ts';
import { instanceInputOf } from '../../../src/templates/launch.ts';
import { caller } from '../../helpers/clients/caller.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';

/** Longest download and start of one server. */
const WAIT_SECONDS = 150;

const test = suite('the catalogue of templates', { timeoutMs: (WAIT_SECONDS + 60) * 1000 });

/** The call, and a pattern of its answer. `folder` is the folder of the instance. */
type Call = (folder: string) => readonly [tool: string, args: object, answer: RegExp];

const CALLS: Readonly<Record<string, Call>> = {
  calculator: () => ['mul', { a: 6, b: 7 }, /42/],
  eslint: (folder) => ['lint-files', { filePaths: [join(folder, 'sample.js')] }, /no-debugger/],
  everything: () => ['echo', { message: 'hello' }, /Echo: hello/],
  filesystem: (folder) => ['read_text_file', { path: join(folder, 'sample.js') }, /debugger/],
  git: (folder) => ['git_init', { path: join(folder, 'repository') }, /repository/],
  map: () => ['show-map', {}, /text/],
  memory: () => ['read_graph', {}, /entities/],
  pdf: () => ['list_pdfs', {}, /text/],
  repomix: (folder) => ['pack_codebase', { directory: folder }, /outputId/],
  'sequential-thinking': () => [
    'sequentialthinking',
    { thought: 'one', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 },
    /thoughtHistoryLength/,
  ],
  threejs: () => ['learn_threejs', {}, /three/i],
  time: () => [
    'convert_time',
    { sourceTimezone: 'UTC', targetTimezone: 'Asia/Tokyo', time: '2026-01-01 12:00:00' },
    /2026-01-01 21:00:00/,
  ],
};

const root = folderOfAll(test)();
const flags = { port: '0', host: '127.0.0.1', 'grace-seconds': '1', database: 'memory://', auth: false };
const server = await startServer(loadConfig({ flags, env: {}, cwd: root, readFile: () => undefined }));
const { templates } = await readCatalogue();
test.after(() => server.close());

const anybody = caller(server.urls[0] ?? '', {}, (WAIT_SECONDS + 10) * 1_000);

async function ask(request: string, body?: object): Promise<string> {
  const answer = await anybody(request, body);
  const text = JSON.stringify(answer.body);
  assert.ok(answer.status < 300, `${request}: ${text}`);
  return text;
}

test('has a call for each template', () => {
  const found = templates.map(({ id }) => id);
  assert.equal(found, Object.keys(CALLS).sort());
});

for (const template of templates) {
  test(`has a working server ${template.id}`, async () => {
    const folder = join(root, template.id);
    await mkdir(folder);
    await writeFile(join(folder, 'sample.js'), 'debugger;\n');
    await writeFile(
      join(folder, 'eslint.config.mjs'),
      "export default [{ rules: { 'no-debugger': 'error' } }];\n",
    );
    const instance = instanceInputOf(template, folder);
    const registered = await ask(`POST /gateway/register?wait=${WAIT_SECONDS}`, {
      template_name: template.id,
      instance: { ...instance, id: 'one', working_dir: folder },
    });
    const { state, reason, stderr } = JSON.parse(registered);
    assert.is(state, 'healthy', `${reason} ${stderr}`);
    const [tool, args, answer] = CALLS[template.id]?.(folder) ?? ['', {}, /$^/];
    assert.match(await ask(`GET /mcp/${template.id}/tools/list`), `"name":"${tool}"`);
    const result = await ask(`POST /mcp/${template.id}/tools/call`, { name: tool, arguments: args });
    assert.match(result, answer);
    assert.not.match(result, /"isError":true/);
    await ask(`DELETE /gateway/deregister/${template.id}/one`);
  });
}

test.run();
