// What `npm ci` needs to work on every machine, and what CONTRIBUTING.md promises of the dependencies.

import { readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { suite } from './helpers/suite.ts';

interface Entry {
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly dev?: boolean;
}

const test = suite('package');
const read = (name: string): string => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8');
interface Manifest extends Readonly<Record<string, Readonly<Record<string, string>>>> {}

const manifest: Manifest & {
  readonly peerDependenciesMeta?: Readonly<Record<string, unknown>>;
} = JSON.parse(read('package.json'));
const lock: { readonly packages: Readonly<Record<string, Entry>> } = JSON.parse(read('package-lock.json'));
/** Of the workspace that brings a clone its Node. */
const node: typeof manifest = JSON.parse(read('tools/node/package.json'));
const names = [manifest.dependencies, manifest.devDependencies, node.optionalDependencies].flatMap((some) =>
  Object.entries(some ?? {}),
);

/** One version, of the package itself or, under a name of our own, of another one: `npm:@scope/name@1.2.3-alpha.4`. */
const exact = /^(?:npm:(?:@[\w.-]+\/)?[\w.-]+@)?\d+\.\d+\.\d+(?:-[\w.-]+)?$/;

test('pins every dependency exactly', () => {
  const found = names.filter(([, version]) => !exact.test(version));
  assert.equal(found, []);
  const loose = [
    '^1.2.3',
    '1.2',
    '*',
    'npm:@a/b',
    'npm:@a/b@^1.2.3',
    'npm:@a/b@latest',
    'alpha.4',
    'github:a/b',
  ];
  assert.equal(
    loose.filter((version) => exact.test(version)),
    [],
  );
});

test('gives a reason for every dependency in CONTRIBUTING.md', () => {
  const reasons = read('CONTRIBUTING.md');
  const found = names.map(([name]) => name).filter((name) => !reasons.includes(name));
  assert.equal(found, []);
});

// npm leaves out platforms that the registry at hand does not carry, and then refuses its own lock file elsewhere.
test('locks the optional packages of every platform', () => {
  const locked = Object.keys(lock.packages);
  const missing = Object.entries(lock.packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies)
      .filter((name) => !locked.some((other) => other.endsWith(`node_modules/${name}`)))
      .map((name) => `${path}: ${name}`),
  );
  assert.equal(missing, []);
});

test('has the drivers that few users need as optional peers, and installs them in a clone', () => {
  const peers: Readonly<Record<string, string>> = manifest.peerDependencies ?? {};
  assert.equal(Object.keys(peers), ['@mikro-orm/mssql', '@mikro-orm/oracledb']);
  for (const [name, version] of Object.entries(peers)) {
    assert.equal(manifest.peerDependenciesMeta?.[name], { optional: true });
    assert.equal(
      [version, manifest.devDependencies?.[name]],
      Array(2).fill(manifest.dependencies?.['@mikro-orm/core']),
    );
    assert.is(manifest.dependencies?.[name], undefined);
  }
});

test('installing the package brings no Node', () => {
  assert.equal(lock.packages['']?.optionalDependencies, undefined);
  assert.ok(Object.keys(node.optionalDependencies ?? {}).every((name) => /^node-(linux|win)-/.test(name)));
});

// An override holds in this repository only, not where the package is installed.
test('needs no override to be installed as a package', () => {
  const overridden = Object.keys(manifest.overrides ?? {});
  const found = overridden.filter((name) => lock.packages[`node_modules/${name}`]?.dev !== true);
  assert.equal(found, []);
});

test('names no registry in the lock file', () => {
  assert.equal(
    Object.entries(lock.packages).filter(([, { resolved, link }]) => resolved !== undefined && !link),
    [],
  );
});

test.run();
