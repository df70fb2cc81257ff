// What `npm ci` needs to work on every machine, and what CONTRIBUTING.md promises of the dependencies.

import { readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { suite } from './helpers/suite.ts';

interface Entry {
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly resolved?: string;
  readonly dev?: boolean;
}

const test = suite('package');
const read = (name: string): string => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8');
const manifest: Readonly<Record<string, Readonly<Record<string, string>>>> = JSON.parse(read('package.json'));
const lock: { readonly packages: Readonly<Record<string, Entry>> } = JSON.parse(read('package-lock.json'));
const names = ['dependencies', 'devDependencies', 'optionalDependencies'].flatMap((kind) =>
  Object.entries(manifest[kind] ?? {}),
);

test('pins every dependency exactly', () => {
  assert.equal(
    names.filter(([, version]) => !/^\d+\.\d+\.\d+$/.test(version)),
    [],
  );
});

test('gives a reason for every dependency in CONTRIBUTING.md', () => {
  const reasons = read('CONTRIBUTING.md');
  assert.equal(
    names.map(([name]) => name).filter((name) => !reasons.includes(name)),
    [],
  );
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

// An override holds in this repository only: whoever installs the package would not have it.
test('needs no override to be installed as a package', () => {
  const overridden = Object.keys(manifest.overrides ?? {});
  assert.equal(
    overridden.filter((name) => lock.packages[`node_modules/${name}`]?.dev !== true),
    [],
  );
});

test('names no registry in the lock file', () => {
  assert.equal(
    Object.entries(lock.packages).filter(([, { resolved }]) => resolved !== undefined),
    [],
  );
});

test.run();
