import { symlink, writeFile } from 'node:fs/promises';
import * as assert from 'uvu/assert';
import { folderOfEach } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { runCommand } from './against-gateway.ts';

const test = suite('template validate');

const folder = folderOfEach(test);

const smallest = { id: 'demo', name: 'Demo', description: 'Shows things.', version: '1.2.3' };

async function validate(content: unknown, ...options: string[]) {
  const file = folder('template.json');
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content, null, 2));
  const { code, out, err: complaints } = await runCommand(['template', 'validate', file, ...options]);
  return { code, out: out.replaceAll(file, 'FILE'), complaints: complaints.replaceAll(file, 'FILE') };
}

test('accepts a definition', async () => {
  assert.equal(await validate({ $schema: 'x', ...smallest }), {
    ...{ code: 0, complaints: '', out: 'FILE is a valid template definition' },
  });
});

test('names every violation with its line and its JSON pointer', async () => {
  const { code, complaints } = await validate({
    ...{ id: 'Demo', name: '', version: '1.2' },
    ports: [0, 'x'],
    environment: { lower: 'x', GOOD: 7 },
    capabilities: ['fly'],
  });
  assert.is(code, 1);
  assert.equal(complaints.split('\n'), [
    'FILE:1: /description is missing',
    'FILE:2: /id must match pattern "^[a-z][a-z0-9-]*$"',
    'FILE:3: /name must NOT have fewer than 1 characters',
    'FILE:4: /version must match pattern "^\\d+\\.\\d+\\.\\d+$"',
    'FILE:6: /ports/0 must be >= 1',
    'FILE:7: /ports/1 must be integer',
    'FILE:10: /environment/lower is no valid name',
    'FILE:11: /environment/GOOD must be string',
    'FILE:14: /capabilities/0 must be one of read, write, tools, resources, prompts',
  ]);
});

test('names what a schema cannot say', async () => {
  const { code, out } = await validate({ ...smallest, command: 'run', args: ['$' + '{TOKEN}'] }, '--json');
  assert.is(code, 1);
  assert.equal(JSON.parse(out), {
    valid: false,
    violations: [{ pointer: '/args/0', line: 8, message: 'nothing fills the placeholder $' + '{TOKEN}' }],
    warnings: [],
    readings: [],
  });
});

test('warns of properties without effect, and fails on them when strict', async () => {
  const content = { ...smallest, 'home/page': 1 };
  const warning = 'warning: FILE:6: /home~1page is unknown and has no effect';
  assert.equal(await validate(content), {
    ...{ code: 0, complaints: warning, out: 'FILE is a valid template definition' },
  });
  assert.equal(await validate(content, '--strict'), { code: 1, complaints: warning, out: '' });
});

test('answers what is no JSON in one line', async () => {
  const { code, complaints } = await validate('{"id": s3cret\n}');
  assert.is(code, 1);
  assert.equal(complaints, "FILE: not JSON: Unexpected token 's'");
});

test('answers what cannot be read in one line, with exit code 2', async () => {
  await symlink('b', folder('a'));
  await symlink('a', folder('b'));
  await writeFile(folder('large'), Buffer.alloc(10 * 1024 * 1024, '{'));
  const answers = await Promise.all(
    ['missing', '.', 'a', 'large'].map(async (name) => {
      const { code, err: complaints } = await runCommand(['template', 'validate', folder(name)]);
      return [code, complaints.replaceAll(folder(), '')];
    }),
  );
  assert.equal(answers, [
    [2, 'stagedoor: /missing does not exist'],
    [2, 'stagedoor:  is a folder; name the template.json in it'],
    [2, 'stagedoor: /a is a loop of links'],
    [2, 'stagedoor: /large has 10.0 MB; a definition may have 1 MB'],
  ]);
});

test('survives a document that is nested very deeply', async () => {
  const { code } = await validate(`{"id": ${'['.repeat(50_000)}${']'.repeat(50_000)}}`);
  assert.is(code, 1);
});

test.run();
