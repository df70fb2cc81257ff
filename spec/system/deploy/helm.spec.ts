// deploy/helm: the templates, with their values, are the objects of the kustomize base. Only values are replaced, as Helm does; Helm itself
// does not run here. spec/docs.spec.ts says whether the templates are up to date.

import { readdir, readFile } from 'node:fs/promises';
import * as assert from 'uvu/assert';
import { parse, parseAllDocuments } from 'yaml';
import { suite } from '../../helpers/suite.ts';

const test = suite('the Helm chart');
const deploy = new URL('../../../deploy/', import.meta.url);
const textOf = (path: string): Promise<string> => readFile(new URL(path, deploy), 'utf8');
const DEFAULTS: Readonly<Record<string, unknown>> = parse(await textOf('helm/values.yaml'));

test('with its own values gives the objects of the base, and no others', async () => {
  const { resources } = parse(await textOf('kubernetes/base/kustomization.yaml'));
  assert.equal((await readdir(new URL('helm/templates/', deploy))).toSorted(), resources.toSorted());
  for (const file of resources) {
    const base = (await textOf(`kubernetes/base/${file}`)).replace(
      'image: stagedoor\n',
      `image: ${DEFAULTS.image}\n`,
    );
    assert.equal(await rendered(file, DEFAULTS), objectsIn(base), file);
  }
});

test('puts each value where it belongs', async () => {
  const values = { image: 'r.example/x:1', replicas: 5, secret: 'other', databaseUrlKey: 'url' };
  assert.equal(Object.keys(values).toSorted(), Object.keys(DEFAULTS).toSorted());
  const [deployment] = await rendered('deployment.yaml', values);
  const { replicas, template } = Object(deployment).spec;
  const [{ secret }] = template.spec.volumes;
  assert.equal([replicas, template.spec.containers[0].image], [5, 'r.example/x:1']);
  assert.equal([secret.secretName, secret.items[0]], ['other', { key: 'url', path: 'database-url' }]);
  const [autoscaler] = await rendered('autoscaler.yaml', values);
  assert.is(Object(autoscaler).spec.minReplicas, 5);
});

test('has the version of the package', async () => {
  const { version } = JSON.parse(await textOf('../package.json'));
  const chart = parse(await textOf('helm/Chart.yaml'));
  assert.equal(
    [chart.apiVersion, chart.name, chart.version, chart.appVersion],
    ['v2', 'stagedoor', version, version],
  );
});

test.run();

async function rendered(file: string, values: Readonly<Record<string, unknown>>): Promise<unknown[]> {
  const template = await textOf(`helm/templates/${file}`);
  const text = template.replace(/\{\{ \.Values\.(\w+) \}\}/g, (_, name: string) => {
    assert.ok(name in values, `${file}: there is no value ${name}`);
    return String(values[name]);
  });
  assert.not.match(text, /\{\{|\}\}/);
  return objectsIn(text);
}

function objectsIn(text: string): unknown[] {
  return parseAllDocuments(text).map((document) => document.toJS());
}
