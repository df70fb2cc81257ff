// Template definitions: list, show, init, add and validate.

import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import * as assert from 'uvu/assert';
import { readCatalogue } from '../../../src/templates/catalogue.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { complaint, gatewayFor, HANDLER, printed, runCommand } from './against-gateway.ts';

const test = suite('template list, show, init, add and validate');
const folder = folderOfEach(test);
const gateway = gatewayFor(test);

const namesIn = (table: string) => [...table.matchAll(/(?<=\n)\S+/g)].map(String);
/** Without a gateway; paths are those in the folder. */
const run = async (line: string, ...words: string[]) => {
  const { code, out, err } = await runCommand(['template', ...line.split(' '), ...words], {}, folder());
  return { code, out: out.replaceAll(folder(), ''), err: err.replaceAll(folder(), '') };
};
const put = async (name: string, definition: unknown) => {
  await mkdir(folder(name));
  await writeFile(folder(name, 'template.json'), JSON.stringify(definition));
};

test('list shows the templates of a gateway, and those with a tag', async () => {
  const out = await printed(gateway.run('template list'));
  assert.match(out, /^TEMPLATE +VERSION +INSTANCES +TAGS +DESCRIPTION\n/);
  assert.match(out, /\ntime +1\.0\.0 +0 +utilities +Tells and converts times/);
  assert.equal(namesIn((await gateway.run('template list --tag utilities')).out), ['calculator', 'time']);
  assert.is((await gateway.run('template list --tag none')).out, 'no template found');
  const { templates } = JSON.parse((await gateway.run('template list --json --tag apps')).out);
  assert.equal(
    templates.map(({ id, is_defined }: { id: string; is_defined: boolean }) => [id, is_defined]),
    ['map', 'pdf', 'threejs'].map((id) => [id, true]),
  );
});

test('show describes a template, also one without a definition', async () => {
  const out = await printed(gateway.run('template show filesystem'));
  const facts = ['name +Filesystem', 'version +1\\.0\\.0', 'author +stagedoor', 'requires +node>=20'];
  for (const fact of [...facts, 'capabilities +read, write, tools', 'tags +demo, files', 'instances +0'])
    assert.match(out, new RegExp(`^${fact}$`, 'm'));
  assert.match(out, /^folders +array .* +Folders that may be read and written\.$/m);
  await gateway.server.gateway.register('bare', { endpoint: 'http://127.0.0.1:1' });
  const record = JSON.parse((await gateway.run('template show bare --json')).out);
  assert.equal([record.name, record.version, record.is_defined, record.instances], ['bare', null, false, 1]);
});

test('set changes settings of a template, and suggests the nearest one', async () => {
  await gateway.server.gateway.register('set', { handler: HANDLER });
  const out = await printed(gateway.run('template set set strategy=random timeout=7'));
  assert.match(out, /^strategy +random$/m);
  assert.match(out, /^timeout +7$/m);
  const tools = await printed(gateway.run(`template set set tool_timeouts={"report":2.5}`));
  assert.match(tools, /^tool_timeouts +\{"report":2\.5\}$/m);
  const hash = await printed(gateway.run('template set set strategy=consistent_hash hash_on=argument:user'));
  assert.match(hash, /^hash_on +argument:user$/m);
  const auth = /^auth +\{"mode":"oauth","who":"shared"\}$/m;
  assert.match(await printed(gateway.run('template set set auth={"mode":"oauth","who":"shared"}')), auth);
  assert.match(await printed(gateway.run('template show set')), auth);
  assert.not.match(await printed(gateway.run('template set set auth=default')), /^auth/m);
  const secret = await complaint(gateway.run('template set set auth={"mode":"oauth","client_secret":"x"}'));
  assert.match(secret, /client_secret: A template has no credentials/);
  const refused = await complaint(gateway.run('template set set hash_on=user'));
  assert.match(refused, /hash_on.*\^\(principal\|argument:\.\{1,256\}\)\$/);
  assert.not.match(await printed(gateway.run('template set set timeout=default')), /^timeout +7$/m);
  assert.match(
    await complaint(gateway.run('template set set timeuot=7'), 2),
    /no setting "timeuot"; did you mean "timeout"\?$/,
  );
  assert.match(await complaint(gateway.run('template set set strategy=best')), /strategy/);
  assert.match(await complaint(gateway.run('template set sett timeout=7')), /did you mean "set"\?$/);
});

test('tools shows what waits for approval in a pinned template, and approve approves it', async () => {
  const tools = [{ name: 'find', inputSchema: { type: 'object' } as const }];
  await gateway.server.gateway.register('pinned', { handler: () => ({ tools }) }, { waitMs: 5_000 });
  assert.match(await printed(gateway.run('template set pinned approve=pinned')), /^approve +pinned$/m);
  tools.push({ name: 'erase', inputSchema: { type: 'object' } });
  await gateway.server.gateway.list('pinned', 'tools');
  const out = await printed(gateway.run('template tools pinned'));
  assert.match(out, /^erase +new +it is new and waits for approval$/m);
  assert.match(out, /^find +approved$/m);
  assert.match(await complaint(gateway.run('template approve pinned fnd')), /no tool named "fnd"/);
  assert.match(await complaint(gateway.run('template tools pinned fnd')), /no tool named "fnd"/);
  const shown = await printed(gateway.run('template tools pinned erase'));
  assert.match(
    shown,
    /^erase: new, it is new and waits for approval\nwaits, digest [0-9a-f]{64}: \{\n {2}"name": "erase",/,
  );
  const [digest] = /[0-9a-f]{64}/.exec(shown) ?? [];
  assert.match(
    await printed(gateway.run('template tools pinned find')),
    /^find: approved\napproved: \{\n {2}"name": "find",/,
  );
  const other = await printed(gateway.run(`template approve pinned --digest ${'0'.repeat(64)}`));
  assert.is(other, 'no tool waited for approval');
  assert.is(
    await printed(gateway.run(`template approve pinned erase --digest ${digest}`)),
    'approved: erase',
  );
  assert.is(await printed(gateway.run('template approve pinned')), 'no tool waited for approval');
});

test('list and show read local definitions without a gateway', async () => {
  const definition = { id: 'mine', name: 'Mine', description: 'Is mine.', version: '0.1.0', tags: ['x'] };
  await put('mine', definition);
  const local = `--local --templates-dir ${folder()}`;
  assert.equal(namesIn((await run(`list ${local}`)).out), ['mine']);
  assert.is((await run(`list --tag y ${local}`)).out, 'no template found');
  assert.equal(JSON.parse((await run(`show mine --json ${local}`)).out), definition);
  const unknown = await complaint(run(`show mien ${local}`));
  assert.is(unknown, 'stagedoor: template "mien" not found; did you mean "mine"?');
});

test('list and show refuse options that have no effect', async () => {
  for (const command of ['list', 'show mine']) {
    const orphan = await complaint(run(`${command} --templates-dir x`), 2);
    assert.is(orphan, 'stagedoor: --templates-dir requires --local');
    const both = await complaint(run(`${command} --local --url http://127.0.0.1:1`), 2);
    assert.is(both, 'stagedoor: --local cannot be combined with --url');
  }
});

const init = (...more: string[]) =>
  run('init search', '--description', 'Searches.', '--command', 'node server.js', ...more);
const ADD = 'add search --templates-dir templates';

test('init writes a valid definition from options, and add copies it into the templates folder', async () => {
  const out = await printed(init());
  assert.match(out, /^\/search\/template\.json is written/);
  assert.equal(JSON.parse(await readFile(folder('search', 'template.json'), 'utf8')), {
    ...{ id: 'search', name: 'Search', description: 'Searches.', version: '0.1.0' },
    ...{ capabilities: ['tools'], transport: 'stdio', command: 'node server.js' },
  });
  await printed(run('validate', folder('search', 'template.json'), '--strict'));
  const line = 'search is added as /templates/search/template.json; a gateway reads it when it starts';
  assert.is(await printed(run(ADD)), line);
  const { templates, problems } = await readCatalogue(folder('templates'));
  assert.equal([templates.map(({ id }) => id), problems], [['search'], []]);
});

test('init and add replace an existing definition only with --force, and leave no other file', async () => {
  await init();
  await run(ADD);
  for (const [again, forced, path] of [
    [() => init(), () => run('init search --description Changed --command x --force'), '/search'],
    [() => run(ADD), () => run(`${ADD} --force`), '/templates/search'],
  ] as const) {
    const line = `stagedoor: ${path}/template.json already exists; --force replaces it`;
    assert.is(await complaint(again()), line);
    await printed(forced());
  }
  assert.match(await readFile(folder('templates/search/template.json'), 'utf8'), 'Changed');
  const files = await readdir(folder('templates'), { recursive: true });
  assert.equal(files.map((name) => name.replaceAll('\\', '/')).sort(), ['search', 'search/template.json']);
});

test('init and add refuse invalid and missing definitions without a question, and change nothing', async () => {
  await put('broken', { id: 'broken', version: 1 });
  for (const [name, fault] of [
    ['broken', 'version: Input should be a valid string'],
    ['missing', 'cannot be read (there is no such file)'],
  ] as const) {
    const refused = await complaint(run(`add ${name} --templates-dir templates`));
    assert.match(refused, `stagedoor: /${name}/template.json was not added\n`);
    assert.match(refused, fault);
  }
  for (const [words, line] of [
    ['init', 'missing <id>, --description, --command or --endpoint: there is no terminal to ask for them'],
    ['init Bad --description x --command y', "id: String should match pattern '^[a-z][a-z0-9-]*$'"],
    ['init a --command x --endpoint http://a', '--command and --endpoint cannot be combined'],
  ] as const)
    assert.is(await complaint(run(words), 2), `stagedoor: ${line}`);
  assert.match(await complaint(run('add broken'), 2), /^stagedoor: missing --templates-dir/);
  assert.equal(await readdir(folder()), ['broken']);
});

const smallest = { id: 'demo', name: 'Demo', description: 'Shows things.', version: '1.2.3' };
async function validate(content: unknown, ...options: string[]) {
  const text = typeof content === 'string' ? content : JSON.stringify(content, null, 2);
  await writeFile(folder('FILE'), text);
  const { code, out, err } = await run('validate', folder('FILE'), ...options);
  return { code, out: out.replaceAll('/FILE', 'FILE'), complaints: err.replaceAll('/FILE', 'FILE') };
}
const VALID = 'FILE is a valid template definition';

test('validate names every violation with its JSON pointer', async () => {
  const { code, complaints } = await validate({
    ...{ id: 'Demo', name: '', version: '1.2' },
    ports: [0, 'x'],
    environment: { lower: 'x', GOOD: 7 },
    capabilities: ['fly'],
  });
  assert.is(code, 1);
  assert.equal(complaints.split('\n'), [
    "FILE: must have required property 'description'",
    'FILE: /id must match pattern "^[a-z][a-z0-9-]*$"',
    'FILE: /name must NOT have fewer than 1 characters',
    'FILE: /version must match pattern "^\\d+\\.\\d+\\.\\d+$"',
    'FILE: /ports/0 must be >= 1',
    'FILE: /ports/1 must be integer',
    'FILE: /environment/lower must match pattern "^[A-Z][A-Z0-9_]*$"',
    'FILE: /environment/GOOD must be string',
    'FILE: /capabilities/0 must be equal to one of the allowed values: read, write, tools, resources, prompts',
  ]);
});

test('validate reports a placeholder that nothing fills', async () => {
  const { code, out } = await validate({ ...smallest, command: 'run', args: ['$' + '{TOKEN}'] }, '--json');
  assert.is(code, 1);
  const violation = { pointer: '', message: 'args[0]: nothing fills the placeholder $' + '{TOKEN}' };
  assert.equal(JSON.parse(out), { valid: false, violations: [violation], warnings: [], readings: [] });
});

test('validate accepts a definition, warns of properties without effect, and fails on them when strict', async () => {
  assert.equal(await validate({ $schema: 'x', ...smallest }), { code: 0, complaints: '', out: VALID });
  const content = { ...smallest, 'home/page': 1 };
  const complaints = 'FILE: /home~1page is unknown and has no effect';
  assert.equal(await validate(content), { code: 0, complaints: `warning: ${complaints}`, out: VALID });
  assert.equal(await validate(content, '--strict'), { code: 1, complaints, out: '' });
});

test('validate reports invalid JSON, deep nesting and unreadable files in one line', async () => {
  const { code, complaints } = await validate('{"id": s3cret\n}');
  assert.equal([code, complaints], [1, "FILE: not JSON: Unexpected token 's'"]);
  assert.is((await validate(`{"id": ${'['.repeat(50_000)}${']'.repeat(50_000)}}`)).code, 1);
  for (const [name, line] of [
    ['missing', '/missing: cannot be read (there is no such file)'],
    ['.', ': is not a file'],
  ] as const)
    assert.is(await complaint(run('validate', folder(name))), line);
});

test.run();
