// `connect --write` and `--remove` on realistic files: other entries stay, and files that cannot be edited safely are not changed.

import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import { parse as parseJson } from 'jsonc-parser';
import * as assert from 'uvu/assert';
import { parse as parseYaml } from 'yaml';
import { locate } from '../../../src/cli/connect/config-file.ts';
import { CONNECT_KINDS } from '../../../src/connect/index.ts';
import { folderOfEach } from '../../helpers/folder.ts';
import { suite } from '../../helpers/suite.ts';
import { complaint, gatewayFor, HANDLER, type Outcome } from '../commands/against-gateway.ts';

const test = suite('connect --write');
const home = folderOfEach(test);
const gateway = gatewayFor(test, { withAccounts: true, more: { oauth: false } }, ({ server }) =>
  server.gateway.register('weather', { id: 'one', handler: HANDLER }),
);

function write(kind: string, ...words: string[]): Promise<Outcome> {
  const person = { env: { HOME: home() }, folder: home() };
  return gateway.runAt(person, 'connect weather --llm', kind, ...words);
}

function put(name: string, text: string | Buffer): string {
  const path = home(name);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, text);
  return path;
}

const read = (path: string): string => readFileSync(path, 'utf8');
const filesOf = (folder: string): string[] => readdirSync(folder).sort();

const SETTINGS = `// my settings
{
    "theme": "dark", // not light
    "context_servers": {
        /* mine */
        "other": { "command": "other", "args": [] }, // theirs
    },
}
`;

test('shows the change without --yes, and fails without a terminal to ask at', async () => {
  const path = put('.config/zed/settings.json', SETTINGS);
  const { code, out, err } = await write('zed', '--http', '--write', '--key', 'sd_x');
  assert.is(code, 1);
  assert.match(out, '+         "weather": {');
  assert.match(err, 'nothing was written, since there is no terminal to ask at; --yes writes it');
  assert.is(read(path), SETTINGS);
  assert.equal(filesOf(join(path, '..')), ['settings.json']);
});

test('asks at a terminal, and writes only after y', async () => {
  const path = put('.config/zed/settings.json', SETTINGS);
  for (const line of ['n', 'y']) {
    const person = { env: { HOME: home() }, folder: home(), answers: [], line };
    const { err } = await gateway.runAt(person, 'connect weather --llm zed --http --write --key sd_x');
    assert.match(err, 'Write it?');
    assert.is(read(path).includes('weather'), line === 'y');
  }
});

test('keeps comments, order, indentation and mode, and makes a backup; --remove undoes the change', async () => {
  const path = put('.config/zed/settings.json', SETTINGS);
  chmodSync(path, 0o640);
  const owner = process.getuid?.() === 0 ? 1234 : statSync(path).uid;
  chownSync(path, owner, statSync(path).gid);
  const { code, err } = await write('zed', '--http', '--write', '--yes', '--key', 'sd_x');
  assert.is(code, 0, err);
  const after = read(path);
  for (const line of SETTINGS.split('\n').slice(0, 6))
    assert.ok(after.includes(line.replace(/,?$/, '')), line);
  assert.match(after, '"X-API-Key": "sd_x"');
  assert.match(err, `warning: other users can read the key in ${path}: run "chmod 600 ${path}"`);
  assert.equal([statSync(path).mode & 0o777, statSync(path).uid], [0o640, owner]);
  await write('zed', '--remove', '--yes');
  const backups = filesOf(join(path, '..')).filter((name) => name.endsWith('.bak'));
  const found = backups.map((name) => read(join(path, '..', name)));
  assert.equal(found, [SETTINGS, after]);
  assert.ok(backups.every((name) => statSync(join(path, '..', name)).uid === owner));
  assert.is(read(path).replace(/\s/g, ''), SETTINGS.replace(/\s/g, ''));
  assert.match((await write('zed', '--remove', '--yes')).out, 'needs no change');
});

test('removes an entry whose comma is on the next line or behind a comment, and one without', async () => {
  for (const [before, after] of [
    ['"weather": {}\n  , "a": 1', '\n   "a": 1'],
    ['"weather": {} // one, two\n  , "a": 1', ' // one, two\n   "a": 1'],
    ['"weather": {} /* one, two */, "a": 1', ' /* one, two */ "a": 1'],
    ['"a": 1\n  , "weather": {} // one, two\n', '"a": 1\n    // one, two\n'],
    [
      '"a": 1 /* one, */ /* two, */, "weather": {} /* three, **/ ',
      '"a": 1 /* one, */ /* two, */  /* three, **/ ',
    ],
  ]) {
    const path = put('.cursor/mcp.json', `{"mcpServers": {${before}}}`);
    await write('cursor', '--remove', '--yes');
    assert.is(read(path), `{"mcpServers": {${after}}}`);
  }
});

test('keeps members that a person added to the entry, and drops those of the other transport', async () => {
  const mine = { command: 'old', args: ['x'], env: { MINE: '1' }, alwaysAllow: ['a'], timeout: 60 };
  const path = put('.cursor/mcp.json', JSON.stringify({ mcpServers: { weather: mine } }));
  await write('cursor', '--stdio', '--write', '--yes');
  const stdio = JSON.parse(read(path)).mcpServers.weather;
  assert.equal(stdio.env, { MINE: '1', STAGEDOOR_API_KEY: `\${env:STAGEDOOR_API_KEY}` });
  assert.is(stdio.command, process.execPath);
  await write('cursor', '--http', '--write', '--yes');
  assert.equal(JSON.parse(read(path)).mcpServers.weather, {
    alwaysAllow: ['a'],
    timeout: 60,
    url: `${gateway.url}/mcp/weather`,
    headers: { 'X-API-Key': `\${env:STAGEDOOR_API_KEY}` },
  });
});

for (const kind of CONNECT_KINDS.filter(({ file }) => file !== undefined)) {
  test(`writes a new file for ${kind.name}, changes nothing the second time, and removes the entry`, async () => {
    const { file, name } = kind;
    assert.ok(file);
    const path = locate(file.locations, { env: { HOME: home() }, folder: home() });
    const first = await write(name, '--write', '--yes', '--key', 'sd_x');
    assert.is(first.code, 0, first.err);
    const once = read(path);
    assert.match(once, 'weather');
    const again = await write(name, '--write', '--yes', '--key', 'sd_x');
    assert.match(again.out, 'needs no change');
    const removed = await write(name, '--remove', '--yes');
    assert.is(removed.code, 0, removed.err);
    assert.not.match(read(path), /bridge/);
    assert.is(filesOf(join(path, '..')).filter((each) => each.endsWith('.tmp')).length, 0);
  });
}

for (const [what, text] of [
  [
    'comments between members',
    '{\n  "mcpServers": {\n    "a": { "command": "x" } // a\n  }, // b\n  "c": [1,  2]\n}\n',
  ],
  ['tabs and CRLF', '\ufeff{\r\n\t"mcpServers": {\r\n\t\t"a": {}\r\n\t}\r\n}\r\n'],
  ['no section', '{\n  "c": 1\n}\n'],
  ['one line', '{"mcpServers":{"a":{"command":"x"}},"c":1}'],
] as const) {
  test(`adds an entry to, and removes it from, a file with ${what}`, async () => {
    const path = put('.cursor/mcp.json', text);
    const { code, err } = await write('cursor', '--write', '--yes');
    assert.is(code, 0, err);
    const entry = parseJson(read(path).replace('\ufeff', '')).mcpServers.weather;
    assert.is(entry.command, process.execPath);
    if (what === 'tabs and CRLF') assert.match(read(path), '\r\n\t\t\t"command": ');
    await write('cursor', '--remove', '--yes');
    const after = read(path);
    if (what === 'comments between members' || what === 'tabs and CRLF') assert.is(after, text);
    else assert.equal(parseJson(after), { mcpServers: {}, ...parseJson(text) });
  });
}

test('keeps comments and other extensions in YAML', async () => {
  const before = '# mine\nGOOSE_MODE: auto # careful\nextensions:\n  # on\n  developer:\n    enabled: true\n';
  const path = put('.config/goose/config.yaml', before);
  await write('goose', '--write', '--yes');
  const after = read(path);
  for (const comment of ['# mine', '# careful', '# on']) assert.match(after, comment);
  assert.is(parseYaml(after).extensions.developer.enabled, true);
  assert.is(parseYaml(after).extensions.weather.type, 'stdio');
  await write('goose', '--remove', '--yes');
  assert.is(read(path), before);
});

test('changes only the lines of the entry in YAML, in the style of the file', async () => {
  const odd = `# mine


GOOSE_MODE:   auto    # careful
list:
- 1
-   2
extensions:
    # on
    developer:
        enabled:   true

        'quoted': {a: 1,b: [2,3]}

ENTRY    # after
    other:
        text: |
          a

          b


# end
last: 0x10
`;
  const path = put('.config/goose/config.yaml', odd.replace('ENTRY', ''));
  await write('goose', '--http', '--write', '--yes');
  const [before = '', , behind = ''] = odd.split(/(ENTRY)/);
  const added = read(path);
  assert.ok(added.startsWith(before.trimEnd()), added);
  assert.match(added, /\n\n {10}b\n {4}weather:\n {8}enabled: true\n/);
  assert.ok(added.endsWith('\n\n\n# end\nlast: 0x10\n'), added);
  await write('goose', '--remove', '--yes');
  assert.is(read(path), odd.replace('ENTRY', ''));
  const own = "    # about weather\n    weather:\n        uri: old # mine\n        bundled: 'false'\n";
  put('.config/goose/config.yaml', odd.replace('ENTRY', own));
  await write('goose', '--http', '--write', '--yes');
  const changed = read(path);
  assert.ok(changed.startsWith(`${before}    # about weather\n    weather:\n        uri: http://`), changed);
  assert.match(changed, /mcp\/weather # mine\n {8}bundled: 'false'\n/);
  assert.ok(changed.endsWith(behind), changed);
  put('.continue/mcpServers/stagedoor.yaml', 'a:   1\nmcpServers:\n- name:   other\n');
  await write('continue', '--http', '--write', '--yes');
  assert.match(
    read(home('.continue/mcpServers/stagedoor.yaml')),
    /^a: {3}1\nmcpServers:\n- name: {3}other\n- name: weather\n {2}type: /,
  );
});

test('keeps each comment of YAML once, and a tag only with its value', async () => {
  const about = '   # odd\n\n  # about others\n  other: {a:  1}\n';
  const path = put(
    '.config/goose/config.yaml',
    `extensions:\n  weather:\n    uri: !secret x\n    # last\n${about}`,
  );
  await write('goose', '--http', '--write', '--yes');
  assert.match(read(path), `    uri: ${gateway.url}/mcp/weather\n`);
  assert.ok(read(path).endsWith(`    # last\n${about}`), read(path));
  for (const empty of [
    'extensions: # mine\nz: 1\n',
    'extensions:\n  # mine\nz: 1\n',
    'extensions: {} # mine\nz: 1\n',
  ]) {
    put('.config/goose/config.yaml', empty);
    await write('goose', '--http', '--write', '--yes');
    assert.match(read(path), /^ {2}# mine$/m);
  }
  put('.continue/mcpServers/stagedoor.yaml', 'mcpServers: []\n');
  await write('continue', '--http', '--write', '--yes');
  assert.match(read(home('.continue/mcpServers/stagedoor.yaml')), /^mcpServers:\n {2}- name: weather\n/);
});

test('keeps members that a person added to an entry in YAML', async () => {
  const mine = 'cmd: old\n    type: stdio\n    envs: { MINE: "1" }\n    bundled: false # mine\n';
  const path = put('.config/goose/config.yaml', `extensions:\n  weather:\n    ${mine}`);
  await write('goose', '--http', '--write', '--yes');
  const { cmd, type, envs, bundled } = parseYaml(read(path)).extensions.weather;
  assert.equal([cmd, type, envs, bundled], [undefined, 'streamable_http', { MINE: '1' }, false]);
  assert.match(read(path), '# mine');
  await write('goose', '--stdio', '--env', 'A=1', '--write', '--yes');
  const { envs: both, uri } = parseYaml(read(path)).extensions.weather;
  assert.equal([both, uri], [{ MINE: '1', A: '1' }, undefined]);
});

test('replaces the entry of the same name in a YAML list, or appends it, also to an empty or missing list', async () => {
  const path = put(
    '.continue/mcpServers/stagedoor.yaml',
    'mcpServers:\n  - name: other\n  - name: weather\n    command: old\n  - 7\n',
  );
  await write('continue', '--http', '--write', '--yes');
  const entry = { name: 'weather', type: 'streamable-http', url: `${gateway.url}/mcp/weather` };
  const [first, { requestOptions: _, ...second }, ...rest] = parseYaml(read(path)).mcpServers;
  assert.equal([first, second, rest], [{ name: 'other' }, entry, [7]]);
  for (const empty of ['mcpServers:\n', '# mine\n', 'mcpServers: []\n', 'mcpServers: [7]\n']) {
    put('.continue/mcpServers/stagedoor.yaml', empty);
    await write('continue', '--http', '--write', '--yes');
    assert.is(parseYaml(read(path)).mcpServers.at(-1).url, entry.url, empty);
  }
  put('.continue/mcpServers/stagedoor.yaml', 'mcpServers:\n  - name: weather\n  - name: other\n');
  await write('continue', '--remove', '--yes');
  assert.equal(parseYaml(read(path)), { mcpServers: [{ name: 'other' }] });
  put('.config/goose/config.yaml', 'extensions: { weather: 1 }\n');
  await write('goose', '--http', '--write', '--yes');
  assert.is(parseYaml(read(home('.config/goose/config.yaml'))).extensions.weather.uri, entry.url);
});

test('keeps the line ends of YAML and TOML', async () => {
  for (const [kind, name, before] of [
    [
      'goose',
      '.config/goose/config.yaml',
      '# mine\r\nextensions:\r\n  developer:\r\n    enabled: true # on\r\n',
    ],
    ['codex', '.codex/config.toml', '# mine\r\nmodel = "x"\r\n'],
  ] as const) {
    const path = put(name, before);
    await write(kind, '--write', '--yes');
    assert.match(read(path), 'weather');
    assert.not.match(read(path), /[^\r]\n/);
    assert.match((await write(kind, '--write', '--yes')).out, 'needs no change');
    await write(kind, '--remove', '--yes');
    assert.is(read(path), before);
  }
});

test('appends to TOML and changes nothing else', async () => {
  const before = '# mine\nmodel = "x"\n\n[mcp_servers.weather-eu]\ncommand = "other" # theirs\n';
  const path = put('.codex/config.toml', before);
  await write('codex', '--write', '--yes');
  assert.ok(read(path).startsWith(before));
  assert.match(read(path), '\n[mcp_servers.weather]\n');
  await write('codex', '--http', '--write', '--yes');
  assert.match(read(path), `env_http_headers = { X-API-Key = "STAGEDOOR_API_KEY" }`);
  await write('codex', '--remove', '--yes');
  assert.is(read(path), before);
});

test('never writes over a copy of an earlier change, nor deletes one', async () => {
  const path = put('.codex/config.toml', 'model = "x"\n');
  mock.timers.enable({ apis: ['Date'], now: Date.now() });
  try {
    const time = new Date().toISOString().replace(/[-:.Z]/g, '');
    const taken = put(`.codex/config.toml.${time}.bak`, 'earlier');
    assert.is((await write('codex', '--write', '--yes')).code, 0);
    assert.is(read(taken), 'earlier');
  } finally {
    mock.timers.reset();
  }
  const [copy] = filesOf(join(path, '..')).filter((name) => name.endsWith('-2.bak'));
  assert.is(read(join(path, '..', copy ?? '')), 'model = "x"\n');
});

test('keeps what the client and its user have added between the marks of TOML', async () => {
  const path = put('.codex/config.toml', 'model = "x"\n');
  await write('codex', '--write', '--yes');
  const mark = '# stagedoor weather: end';
  const added =
    'startup_timeout_sec = 60 # slow\nenabled_tools = ["hello"]\n[mcp_servers.weather.tools.hello]\napproval_mode = "approve"\n';
  const other = '\n[mcp_servers.other]\ncommand = "other"\n';
  writeFileSync(path, read(path).replace(mark, `${added}${other}${mark}`));
  await write('codex', '--http', '--write', '--yes');
  const written = read(path);
  assert.ok(written.includes(`${added}\n${mark}\n[mcp_servers.other]\ncommand = "other"\n`), written);
  assert.is(written.includes('\nargs = '), false);
  await write('codex', '--remove', '--yes');
  assert.is(read(path), 'model = "x"\n\n[mcp_servers.other]\ncommand = "other"\n');
});

test('replaces how Codex connects, which rewrites its entries as tables', async () => {
  const path = put('.codex/config.toml', '');
  await write('codex', '--http', '--write', '--yes');
  const mark = '# stagedoor weather: end';
  const kept =
    'tool_timeout_sec = 60\nname = \'a\'\nother = "a \\" b"\nmore = { one = { two = 2 } } # kept\n[mcp_servers.weather.tools.hello]\napproval_mode = "approve"\n';
  const lists = 'cwd = "/"\nargs = [\n  "x", # ]\n]\n';
  const long = 'disabled_tools = [\n  "]", # [\n  "y",\n]\nnote = """\n[mcp_servers.no]\n"""\n';
  const connects =
    '[mcp_servers.weather.env_http_headers]\nX-API-Key = "OTHER"\n[mcp_servers.weather."env"]\nA = "b"\n';
  writeFileSync(path, read(path).replace(mark, `${lists}${long}${kept}${connects}${mark}`));
  await write('codex', '--http', '--write', '--yes');
  const written = read(path);
  assert.ok(written.endsWith(`\n${long}${kept}${mark}\n`), written);
  for (const dropped of ['cwd', 'OTHER', '"x"', '"b"']) assert.is(written.includes(dropped), false);
  assert.match((await write('codex', '--http', '--write', '--yes')).out, 'needs no change');
});

const PLACES = {
  cursor: '.cursor/mcp.json',
  goose: '.config/goose/config.yaml',
  codex: '.codex/config.toml',
};
const REPEATED_ENTRY = '{"mcpServers": {"weather": {}, "other": {}, "weather": {}}}';
const USED_ELSEWHERE = 'extensions:\n  weather: &a {cmd: x}\n  other: *a\n';
const USED_IN_PART = 'extensions:\n  weather:\n    uri: x\n    headers: &a {B: c}\n  other:\n    env: *a\n';
const OWN_TABLE = '[mcp_servers.weather]\nurl = "x"\n';
for (const [what, kind, text, reason] of [
  ['broken JSON', 'cursor', '{ "mcpServers": {', /is not JSON: [a-z ]+ in line 1/],
  ['a list', 'cursor', '[]', /has no object at its top/],
  ['a section of another type', 'cursor', '{"mcpServers": 3}', /has no object at mcpServers/],
  ['a section that is there twice', 'cursor', '{"mcpServers": {}, "mcpServers": {}}', /"mcpServers" twice/],
  ['an entry that is there twice', 'cursor', REPEATED_ENTRY, /has "weather" twice at mcpServers: remove one/],
  [
    'an entry with a member that is there twice',
    ...(['cursor', '{"mcpServers": {"weather": {"url": "a", "url": "b"}}}', /has "url" twice/] as const),
  ],
  ['JSON of 100,000 levels', 'cursor', '['.repeat(100_000), /is nested too deeply/],
  ['broken YAML', 'goose', 'a: [', /is not YAML/],
  ['YAML that contains itself', 'goose', 'a: &a [*a]\n', /is not YAML/],
  ['an entry of YAML that another one shares', 'goose', USED_ELSEWHERE, /by an anchor: change it by hand/],
  ['an entry of YAML of which another one shares a part', 'goose', USED_IN_PART, /by an anchor/],
  ['a YAML document that is not a map', 'goose', 'hello\n', /has no map at its top/],
  ['an unresolved YAML alias', 'goose', 'a: *b\n', /is not YAML: Unresolved alias .*b/],
  ['a table of TOML that a person wrote', 'codex', OWN_TABLE, /change it by hand/],
  ['an inline table of TOML', 'codex', 'mcp_servers = { }\n', /change it by hand/],
  ['a member of a table of TOML', 'codex', '[mcp_servers]\nweather = {}\n', /change it by hand/],
  ['a dotted key of TOML', 'codex', 'mcp_servers.weather.url = "x"\n', /change it by hand/],
  ['half a block of TOML', 'codex', '# stagedoor weather: begin\n', /has only one of the lines/],
  ['invalid UTF-8', 'cursor', Buffer.from([0x7b, 0xff, 0x7d]), /is not UTF-8/],
  ['10 MB', 'cursor', ' '.repeat(10 * 1024 * 1024), /has 10485760 bytes/],
] as const) {
  test(`refuses to change ${what}`, async () => {
    const path = put(PLACES[kind], text);
    const err = await complaint(write(kind, '--write', '--yes'));
    assert.match(err, reason);
    assert.is(err.split('\n').filter((line) => line.startsWith('stagedoor:')).length, 1, err);
    assert.ok(Buffer.from(text).equals(readFileSync(path)));
    assert.equal(filesOf(join(path, '..')).length, 1);
  });
}

test('refuses to change a read-only file', async () => {
  const path = put('.cursor/mcp.json', '{}');
  chmodSync(path, 0o444);
  const refused = await complaint(write('cursor', '--write', '--yes'));
  assert.match(refused, `${path} is read-only; nothing was changed`);
  assert.is(read(path), '{}');
});

test('follows a symbolic link, and refuses a loop of links, one without a target, and a folder', async () => {
  const real = put('dotfiles/mcp.json', '{}');
  mkdirSync(home('.cursor'));
  symlinkSync(real, home('.cursor/mcp.json'));
  await write('cursor', '--write', '--yes');
  assert.match(read(real), 'weather');
  assert.equal(filesOf(home('.cursor')), ['mcp.json']);
  for (const [target, code] of [
    ['mcp.json', 'ELOOP'],
    ['gone.json', 'there is no such file'],
  ] as const) {
    rmSync(home('.cursor/mcp.json'));
    symlinkSync(target, home('.cursor/mcp.json'));
    const refusal = await complaint(write('cursor', '--write', '--yes'));
    assert.match(refusal, `cannot be read (${code}); nothing was changed`);
  }
  assert.match(await complaint(write('cursor', '--write', '--yes', '--file', home())), 'is not a file');
});

test('refuses incompatible options, and clients without a file', async () => {
  const cases: [string, RegExp][] = [
    ['curl --write', /curl has no configuration file/],
    [
      'claude --write --yes',
      /Claude \(desktop app\) reads no variables in its file: give the key with --key/,
    ],
    ['cursor --write --remove', /--write cannot be combined with --remove/],
    ['cursor --yes', /--yes requires --write/],
    ['cursor --file x', /--file requires --write/],
    ['cursor --write --output x', /cannot be combined with --output/],
    ['cursor --remove --http', /--remove cannot be combined with --http/],
    ['cursor --remove --key -', /--remove cannot be combined with --key/],
  ];
  for (const [line, reason] of cases) {
    const [kind = '', ...words] = line.split(' ');
    assert.match(await complaint(write(kind, ...words), 2), reason);
  }
});

test('finds the file on each operating system', () => {
  const places = { macos: '~/Library/x', windows: '%APPDATA%\\x', linux: '.x' };
  const at = (platform: NodeJS.Platform) =>
    locate(places, { env: { HOME: '/home/ada', APPDATA: '/roaming' }, folder: '/project' }, platform);
  assert.is(at('darwin'), '/home/ada/Library/x');
  assert.is(at('linux'), '/project/.x');
  assert.ok(at('win32').includes('/roaming'));
});

test.run();
