// Every spelling of a path to a file of the gateway in a command, on a real file system.

import { link, mkdir, realpath, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { mock } from 'node:test';
import { pathToFileURL } from 'node:url';
import { firstValueFrom } from 'rxjs';
import * as assert from 'uvu/assert';
import { systemClock } from '../../src/domain/time/clock.ts';
import { timer$ } from '../../src/domain/time/clock-streams.ts';
import { type ExposedProgram, exposureOf, protectedDatabase } from '../../src/templates/command-exposure.ts';
import { folderOfEach } from '../helpers/folder.ts';
import { suite } from '../helpers/suite.ts';
import { settled } from '../helpers/time/simulated-time.ts';
import { turnsOf } from '../helpers/time/turns.ts';

const test = suite('the exposure of a command');
const folder = folderOfEach(test);
const { pid } = process;

test.before.each(async () => {
  await mkdir(folder('home/shared/deep'), { recursive: true });
  await mkdir(folder('elsewhere'));
  for (const name of ['gateway.db', 'gateway.key']) await writeFile(folder('home', name), '');
  await symlink(folder('home'), folder('elsewhere/link'));
  await symlink(folder('home/shared'), folder('elsewhere/inside'));
  await symlink('/proc/self', folder('home/shared/process'));
  await link(folder('home/gateway.key'), folder('elsewhere/hard'));
});

/** Words of a command that name a path of the gateway in this folder, by kind. */
const SPELLINGS: Readonly<Record<string, (home: string) => readonly string[]>> = {
  'as written, from the folder of the gateway': (home) => [
    '.',
    './',
    './.',
    '..',
    '',
    'gateway.db',
    './gateway.key',
    'gateway.db-wal',
    'shared/..',
    'shared/deep/../..',
    `../${basename(home)}`,
    `../${basename(home)}//gateway.db`,
    'gateway.db/',
    'gateway.db/.',
    'new/..',
    'new/../gateway.key',
    'shared/new/../../gateway.db',
  ],
  absolute: (home) => [
    '/',
    '//',
    '/.',
    home,
    `${home}/`,
    `${home}//`,
    `/${home}`,
    `${home}/.`,
    dirname(home),
    `${home}/x/..`,
    `/nowhere/..${home}`,
  ],
  'links, before and after `..` is removed': () =>
    [
      'link',
      'link/',
      'link/x/..',
      'link/gateway.db',
      'link/x/../gateway.key',
      'inside/..',
      'inside/x/../..',
      'hard',
    ].map((name) => `${folder('elsewhere')}/${name}`),
  'options, lists, URLs, encoded text and shells': (home) => [
    `--root=${home}`,
    `-C${home}`,
    `-xC${home}`,
    '-C.',
    '-I..',
    `--flag=a=${home}`,
    '--root=',
    `--root ${home}`,
    `/tmp:${home}`,
    `${home}:/data:ro`,
    `/tmp,${home}`,
    `--dirs=/tmp;${home}`,
    `type=bind,source=${home},dst=/x`,
    `a|${home}`,
    `file://${home}`,
    `FILE://localhost${home}/`,
    `file:${home}`,
    `file://${home}/x/%2e%2e`,
    `sqlite://${home}/gateway.db`,
    'sqlite:///gateway.db',
    'sqlite:gateway.db?mode=ro',
    String(pathToFileURL(home)),
    `file:\\\\\\${home.slice(1)}`,
    home.replace('home', '%68ome'),
    `${home}%2fgateway.key`,
    '%2e',
    '%2e%2e%2f',
    `@${home}/gateway.key`,
    `{"root":"${home}"}`,
    'cat gateway.key',
    `cat <${home}/gateway.key`,
    "cat gate'way'.key",
    'cat gate\\way.key',
    'cd ..;ls',
    '(cat gateway.key)',
    'cat $PWD/gateway.key',
    '$' + '{PWD}',
    `cat "${home}/gateway.key"`,
    '~+',
    '~+/gateway.db',
    folder('home').replaceAll('/', '\\'),
  ],
};

test('is found in every spelling of a path of the gateway', async () => {
  const words = Object.values(SPELLINGS).flatMap((spellings) => spellings(folder('home')));
  assert.equal(await allowedOf(words), []);
});

test('is found in paths that are longer than any that a system opens, once their `..` is removed', async () => {
  const home = folder('home');
  const long = 'x/../'.repeat(1_200);
  const words = [
    ...[
      `./${long}`,
      `${long}gateway.db`,
      `${home}/${long}`,
      `/${'/'.repeat(6_000)}proc`,
      `${home}${'/.'.repeat(3_000)}`,
    ],
    ...[`root=${home}/${long}`, `a=b,root=${home}/${long}`, `~+/${long}`, `file://${home}/${long}`],
    ...[`sqlite:///${long}gateway.db`, `{"root":"${home}/${long}"}`, `${'='.repeat(5_000)}${home}/${long}`],
    ...[`${long}shared/..`, `/${long}proc/self`, `${home}/${'%78/%2e%2e/'.repeat(600)}`],
  ];
  assert.equal(await allowedOf(words), []);
  for (const ROOT of [`${home}/${'x/../'.repeat(6_000)}`, `a=${home}/${'x/../'.repeat(6_000)}`])
    assert.type(await exposure({ args: [], env: { ROOT } }), 'string');
});

test('is found in escapes of JSON, and in URLs of a relative path', async () => {
  const home = folder('home');
  const words = [
    ...[`{"root":"${home.replaceAll('/', '\\u002f')}"}`, `{"root":"${home.replace('home', '\\u0068ome')}"}`],
    ...['{"root":"\\u002e"}', '"\\x2e\\x2e"', '{"root":"\\/proc"}', `{"a":"\\u002Fproc\\u002fself"}`],
    ...[
      'sqlite://gateway.db',
      'sqlite://./gateway.db',
      'sqlite://shared/../gateway.key?mode=ro',
      'unix://gateway.db',
    ],
    ...[`fi\nle://${home}`, `\u0001file://${home}`, `f\til\te:${home.replace('home', 'ho\tme')}`],
  ];
  assert.equal(await allowedOf(words), []);
});

test('is found in paths of processes and devices, whatever they lead to', async () => {
  const self = ['self', 'thread-self', `${pid}`, '1'].map((name) => `/proc/${name}`);
  const words = [
    ...[
      '/proc',
      '/proc/',
      '//proc',
      '/proc/.',
      '/sys',
      '/dev',
      '/dev/fd',
      '/dev/fd/3',
      '/dev/fd/..',
      '/dev/shm',
      '/sys/kernel',
    ],
    ...self,
    ...self.flatMap((process) =>
      [
        'cwd',
        'cwd/x/..',
        'cwd/shared',
        'root',
        'root/tmp',
        'fd',
        'fd/3',
        'environ',
        'mem',
        'task',
        'cwd/..',
      ].map((name) => `${process}/${name}`),
    ),
    ...[
      '/nowhere/../proc/self',
      '/tmp/../proc',
      'shared/process',
      'shared/process/cwd/shared',
      'shared/process/x/..',
    ],
    ...[
      `${'../'.repeat(30)}proc/self/cwd`,
      '--root=/proc/self/cwd/shared',
      'file:///proc/self/environ',
      '/tmp:/proc',
      '%2fproc',
    ],
  ];
  assert.equal(await allowedOf(words), []);
  assert.equal(await allowedOf(['/', '/proc', '/dev/fd/3'], []), [], 'without a file of the gateway');
});

test('is found in the working folder and in variables, whose values are not shown', async () => {
  for (const workingDir of [
    '.',
    '..',
    folder('home'),
    `${folder('elsewhere')}/link/x/..`,
    '/proc/self/cwd',
    'shared/process/cwd',
  ])
    assert.type(await exposure({ args: [], workingDir }), 'string', workingDir);
  assert.type(await exposure({ args: ['..'], workingDir: 'shared' }), 'string');
  const env = { ROOT: `secret,${folder('home')}` };
  const found = String(await exposure({ args: [], env }));
  assert.match(found, /^The variable ROOT is a folder that holds the database of this gateway/);
  assert.not.match(found, /secret/);
  for (const value of ['.', '/proc/self', 'file:///proc', `/tmp:${folder('home')}`, '$PWD/gateway.db'])
    assert.type(await exposure({ args: [], env: { ROOT: value } }), 'string', value);
  for (const value of ['', 'a/b', 'dG9rZW4=', 'https://example.com/', 'C.UTF-8', '/usr/bin:/bin'])
    assert.is(await exposure({ args: [], env: { ROOT: value } }), undefined, value);
  assert.type(await exposure({ args: ['~'], env: { HOME: folder('home') } }), 'string');
  assert.is(await exposure({ args: [], env: { HOME: process.env.HOME ?? '' } }), undefined);
});

test('is not found in other words', async () => {
  const words = [
    ...[
      '-y',
      '--',
      'server.js',
      './shared',
      'shared/..x',
      '--root=shared',
      'a=b',
      'shared/new',
      '/nowhere/at/all',
      '...',
    ],
    ...[
      '@scope/server@1.2.3',
      'https://example.com/',
      'http://localhost:8080/mcp',
      '**/*.ts',
      '-p8080',
      '--port=1',
      '1.2.3',
    ],
    ...[
      '--include=*.ts',
      'a, b',
      'https://example.com:8443/a?b=c',
      '/procedures',
      '/dev-files',
      folder('elsewhere/inside'),
    ],
    ...['process.stdin.resume()', '--level=info', '%', '%zz', '$1', 'a\0b', 'x'.repeat(9_000)],
  ];
  const found = await Promise.all(words.map(async (word) => [word, await exposure({ args: [word] })]));
  assert.equal(
    found.filter(([, reason]) => reason !== undefined),
    [],
  );
});

test('is unknown when the file system is silent for 2 s, or answers for longer than 10 s', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const program = {
      command: 'node',
      args: Array.from({ length: 20 }, (_, index) => `/x/${index}`),
      env: {},
    };
    /** What the check finds when each place below /x is looked at for `ms`, and after how many seconds. */
    const checked = async (ms: number) => {
      const look = async (path: string) => {
        if (!path.startsWith('/x/')) return { path, identity: path };
        await firstValueFrom(timer$(systemClock, ms));
        return { path, identity: undefined };
      };
      let outcome: unknown = 'under way';
      const ended = exposureOf(program, [], { from: '/', look }).then((exposure) => {
        outcome = exposure?.isFound;
      });
      let quarters = 0;
      for (await settled(); outcome === 'under way'; quarters += 1) {
        mock.timers.tick(250);
        await settled();
      }
      await ended;
      return [outcome, quarters / 4];
    };
    assert.equal(await checked(250), [undefined, 5]);
    assert.equal(await checked(1_500), [false, 10]);
    assert.equal(await checked(60_000), [false, 2.25]); // other places were answered in the first step
  } finally {
    mock.timers.reset();
  }
});

test('is looked for in several turns of the event loop, and not below what does not exist', async () => {
  const looked: string[] = [];
  const look = async (path: string) => {
    looked.push(path);
    return { path, identity: path.startsWith('/x/') ? undefined : path };
  };
  const program = (env: Record<string, string>, ...args: string[]) => ({ command: 'node', args, env });
  const checked = (env: Record<string, string>, ...args: string[]) =>
    exposureOf(program(env, ...args), [], { from: '/', look });
  const folders = Array.from({ length: 8 }, (_, index) => `/x/${index}${'/d'.repeat(2_000)}`);
  assert.is(await checked({ ROOT: folders.join(',') }), undefined);
  assert.ok(looked.length < 50, `${looked.length} places`);
  const many = Array.from({ length: 1_000 }, (_, index) => `/x/u${index}${'/'.repeat(25)}`).join('=');
  const turns = await turnsOf(() => checked({ ROOT: many }));
  assert.ok(turns > 30, `${turns} turns`);
  // What follows each `=`, and what variables add, would be hundreds of megabytes.
  assert.is(await checked({ ROOT: '//x/='.repeat(6_500) }), undefined);
  assert.is(await checked({ MANY: ','.repeat(32_768) }, '$MANY'.repeat(1_600)), undefined);
  assert.is(
    await checked({ MANY: ','.repeat(32_768) }, `$__proto__$constructor${'$MANY'.repeat(1_600)}`),
    undefined,
  );
});

test('is assumed where a program has more texts, or longer ones, than can be checked, and not before', async () => {
  const look = async (path: string) => ({ path, identity: path === '/' ? path : undefined });
  const checked = (env: Record<string, string>, args: string[] = []) =>
    exposureOf({ command: 'node', args, env }, [], { from: '/', look });
  const words = (letter: string) =>
    Array.from({ length: 5_000 }, (_, index) => `${letter}${index}`).join(' ');
  assert.is(await checked({ A: words('a'), B: words('b'), C: words('c') }), undefined);
  const many = Object.fromEntries([...'abcdefg'].map((letter) => [letter.toUpperCase(), words(letter)]));
  const exposure = await checked(many);
  assert.match(exposure?.reason ?? '', 'more than 32768 texts that may be paths');
  assert.is(exposure?.isFound, true);
  // Each of these words is short, and has 64 kB more of the variable.
  const args = Array.from({ length: 256 }, (_, index) => `$A$A${index}`);
  assert.is((await checked({ A: ' '.repeat(32_768) }, args))?.isFound, true);
  // The same word costs its work once.
  assert.is(await checked({ A: ' '.repeat(32_768) }, Array(256).fill('$A$A')), undefined);
});

test('takes several turns of the event loop for one word', async () => {
  const look = async (path: string) => ({ path, identity: path === '/' ? path : undefined });
  const program = { command: 'node', args: ['$A$A%2e\\n'], env: { A: ','.repeat(32_768) } };
  const turns = await turnsOf(() => exposureOf(program, [], { from: '/', look }));
  assert.ok(turns > 10, `${turns} turns`);
});

test('ends at a link to itself', async () => {
  await symlink('loop', folder('home/shared/loop'));
  assert.is(await exposure({ args: ['shared/loop/x'] }), undefined);
  assert.type(await exposure({ args: ['shared/loop/../..'] }), 'string');
  assert.is(await exposure({ args: ['.'], force: true }), undefined);
});

test('is found for the journal beside the file that a link names', async () => {
  await mkdir(folder('data'));
  await writeFile(folder('data/x.db'), '');
  await writeFile(folder('data/x.db-wal'), '');
  await symlink(folder('data/x.db'), folder('home/linked.db'));
  const paths = protectedDatabase(folder('home/linked.db'));
  assert.match(
    String(await exposure({ args: [folder('data/x.db-wal')] }, paths)),
    'the database of this gateway',
  );
});

test.run();

/** The words with which a command would be allowed. */
async function allowedOf(words: readonly string[], paths?: []): Promise<string[]> {
  const reasons = await Promise.all(words.map((word) => exposure({ args: [word] }, paths)));
  return words.filter((_, index) => reasons[index] === undefined);
}

async function exposure(
  program: Partial<ExposedProgram>,
  paths = protectedDatabase(folder('home/gateway.db')),
) {
  const from = await realpath(folder('home'));
  const found = await exposureOf({ command: 'node', args: [], env: {}, ...program }, paths, { from });
  return found?.reason;
}
