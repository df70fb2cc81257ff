// deploy/kubernetes, rendered by kubectl: the objects have the fields of the Kubernetes API, refer to each other, and agree with
// the settings and routes of the gateway; three gateways that start at once with the rendered environment serve. No cluster runs
// here. Without kubectl these tests are skipped.

import { execFile } from 'node:child_process';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import * as assert from 'uvu/assert';
import { parseAllDocuments } from 'yaml';
import { ALL_SETTINGS } from '../../../src/config/settings.ts';
import { LIMITS } from '../../../src/domain/limits.ts';
import { ROUTES } from '../../../src/http/routes/index.ts';
import { METRICS } from '../../../src/metrics/metric-table.ts';
import { startHttpServer } from '../../fixtures/http-server.ts';
import { type Json, objectOr } from '../../fixtures/wire.ts';
import { caller, field, tokenOf, toolText } from '../../helpers/clients/caller.ts';
import { untilStatus } from '../../helpers/eventually.ts';
import { folderOfAll } from '../../helpers/folder.ts';
import { freePort } from '../../helpers/network/free-port.ts';
import { AS_IT_COMES, Program } from '../../helpers/programs/program.ts';
import { freshDatabase, postgresql } from '../../helpers/services/services.ts';
import { suite } from '../../helpers/suite.ts';

const run = promisify(execFile);
const repository = fileURLToPath(new URL('../../..', import.meta.url));
const kubernetes = `${repository}deploy/kubernetes`;
const OVERLAYS = (await readdir(`${kubernetes}/overlays`)).map((name) => `overlays/${name}`);
/** Where `kubernetes-types`, made from the OpenAPI description of Kubernetes, has the kinds of an API. */
const TYPES: Readonly<Record<string, string>> = {
  v1: 'core/v1',
  'apps/v1': 'apps/v1',
  'autoscaling/v2': 'autoscaling/v2',
  'networking.k8s.io/v1': 'networking/v1',
  'policy/v1': 'policy/v1',
  'rbac.authorization.k8s.io/v1': 'rbac/v1',
};

const hasKubectl = await run('kubectl', ['kustomize', '--help']).then(
  () => true,
  () => false,
);
const database = await postgresql();
const test = suite('the Kubernetes files', { timeoutMs: 90_000 });
const folder = folderOfAll(test);
const rendered = test.needs(hasKubectl, 'kubectl is not installed');

rendered('have only fields of the Kubernetes API, with values of their types', async () => {
  const all = await Promise.all(['base', ...OVERLAYS].map(render));
  assert.equal(await typeErrors(all.flat()), []);
  // A misspelt field is noticed, and a value of another type.
  const [deployment] = of(await render('base'), 'Deployment');
  const text = JSON.stringify(deployment);
  for (const [right, wrong] of [
    ['"minReadySeconds"', '"minReadySecond"'],
    ['"runAsUser":1000', '"runAsUser":"1000"'],
  ] as const)
    assert.match(String(await typeErrors([JSON.parse(text.replace(right, wrong))])), /error TS2/);
});

rendered('refer to labels, ports, accounts and targets that exist', async () => {
  for (const objects of await Promise.all(['base', ...OVERLAYS].map(render))) {
    const workloads = [...of(objects, 'Deployment'), ...of(objects, 'StatefulSet')];
    const pods = workloads.map((workload) => at(workload, 'spec', 'template'));
    const labelsOf = (pod: Json) => at(pod, 'metadata', 'labels');
    const selected = (selector: Json) => {
      const found = pods.filter((pod) => isWithin(selector, labelsOf(pod)));
      assert.is(found.length, 1, `${JSON.stringify(selector)} selects ${found.length} kinds of pods`);
      return objectOr(found[0]);
    };
    const portsOf = (pod: Json) =>
      containersOf(pod).flatMap(({ ports }) => list(ports).map(({ name }) => name));
    for (const workload of workloads)
      assert.is(selected(at(workload, 'spec', 'selector', 'matchLabels')), at(workload, 'spec', 'template'));
    for (const pod of pods) {
      for (const { labelSelector } of list(at(pod, 'spec').topologySpreadConstraints))
        assert.is(selected(at(objectOr(labelSelector), 'matchLabels')), pod);
      const { serviceAccountName } = at(pod, 'spec');
      const accounts = of(objects, 'ServiceAccount').map((account) => at(account, 'metadata').name);
      if (serviceAccountName !== undefined) assert.equal([serviceAccountName], accounts);
      const volumes = list(at(pod, 'spec').volumes).map(({ name }) => name);
      const claims = workloads.flatMap((workload) => list(at(workload, 'spec').volumeClaimTemplates));
      const claimed = claims.map((claim) => at(claim, 'metadata').name);
      for (const { volumeMounts } of containersOf(pod))
        for (const { name } of list(volumeMounts))
          assert.ok([...volumes, ...claimed].includes(name), String(name));
    }
    for (const service of of(objects, 'Service')) {
      const pod = selected(at(service, 'spec', 'selector'));
      for (const { targetPort } of list(at(service, 'spec').ports))
        assert.ok(portsOf(pod).includes(targetPort), String(targetPort));
    }
    for (const budget of of(objects, 'PodDisruptionBudget'))
      selected(at(budget, 'spec', 'selector', 'matchLabels'));
    for (const policy of of(objects, 'NetworkPolicy')) {
      const pod = selected(at(policy, 'spec', 'podSelector', 'matchLabels'));
      for (const { from, ports } of list(at(policy, 'spec').ingress)) {
        for (const peer of list(from)) selected(at(peer, 'podSelector', 'matchLabels'));
        for (const { port } of list(ports)) assert.ok(portsOf(pod).includes(port), String(port));
      }
    }
    for (const scaler of of(objects, 'HorizontalPodAutoscaler')) {
      const { kind, name } = at(scaler, 'spec', 'scaleTargetRef');
      assert.ok(of(objects, String(kind)).some((target) => at(target, 'metadata').name === name));
    }
    for (const binding of of(objects, 'RoleBinding')) {
      const [subject = {}] = list(binding.subjects);
      const account = of(objects, 'ServiceAccount').map((one) => at(one, 'metadata'));
      assert.ok(
        account.some(({ name, namespace }) => name === subject.name && namespace === subject.namespace),
      );
    }
  }
});

rendered('agree with the settings, the routes and the metrics of the gateway', async () => {
  const variables = ALL_SETTINGS.flatMap(({ variable, secret }) =>
    [variable, ...(secret ? [`${variable}_FILE`] : [])].map((name) => `GATEWAY_${name}`),
  );
  for (const objects of await Promise.all(['base', ...OVERLAYS].map(render))) {
    const { spec, gateway } = gatewayOf(objects);
    const names = list(gateway.env).map(({ name }) => String(name));
    // The address of the pod is the default of a setting.
    assert.equal(
      names.filter((name) => !variables.includes(name) && name !== 'POD_IP'),
      [],
    );
    const paths = ['startupProbe', 'livenessProbe', 'readinessProbe'].map((probe) => {
      const { path, port } = at(gateway, probe, 'httpGet');
      assert.is(port, 'metrics'); // which outsiders cannot keep busy
      return path;
    });
    assert.equal(paths, ['/livez', '/livez', '/readyz']);
    for (const path of paths)
      assert.ok(ROUTES.some((route) => route.method === 'GET' && route.path === path));
    const { containerPort } = list(gateway.ports).find(({ name }) => name === 'http') ?? {};
    assert.is(environmentOf(gateway).GATEWAY_PORT, String(containerPort));
    const peer = list(gateway.ports).find(({ name }) => name === 'peer');
    assert.is(environmentOf(gateway).GATEWAY_CLUSTER_LISTEN, String(peer?.containerPort));
    const metrics = list(gateway.ports).find(({ name }) => name === 'metrics');
    const { GATEWAY_METRICS_PORT, GATEWAY_METRICS_HOST } = environmentOf(gateway);
    assert.equal([GATEWAY_METRICS_PORT, GATEWAY_METRICS_HOST], [String(metrics?.containerPort), '$(POD_IP)']);
    assert.ok(names.indexOf('POD_IP') < names.indexOf('GATEWAY_METRICS_HOST'));
    // The stop: the wait for the proxies, the delay, the calls in flight, and the steps that end programs.
    const { seconds } = at(gateway, 'lifecycle', 'preStop', 'sleep');
    const { GATEWAY_SHUTDOWN_DELAY } = environmentOf(gateway);
    const stopSeconds = Number(seconds) + Number(GATEWAY_SHUTDOWN_DELAY) + LIMITS.graceMs / 1_000;
    assert.ok(Number(spec.terminationGracePeriodSeconds) >= stopSeconds + 20);
  }
  const text = await readFile(`${kubernetes}/components/calls-in-flight/kustomization.yaml`, 'utf8');
  const [, series] = /seriesQuery: (\w+)/.exec(text) ?? [];
  assert.ok(
    METRICS.some(({ name }) => name === series),
    series,
  );
});

rendered('contain no credential, and name the keys of the Secret that the guide creates', async () => {
  const guide = await readFile(`${repository}docs/guides/kubernetes.md`, 'utf8');
  const created = [...guide.matchAll(/--from-(?:literal|file)="?([\w-]+)=/g)].map(([, key]) => key);
  for (const objects of await Promise.all(['base', ...OVERLAYS].map(render))) {
    assert.equal(of(objects, 'Secret'), []);
    assert.not.match(JSON.stringify(objects), /:\/\/[^"/]*:[^"/]*@/);
    const volumes = [...of(objects, 'Deployment'), ...of(objects, 'StatefulSet')].flatMap((workload) =>
      list(at(workload, 'spec', 'template', 'spec').volumes),
    );
    for (const { secret } of volumes.filter((volume) => volume.secret !== undefined)) {
      const { secretName, optional, items } = objectOr(secret);
      assert.equal([secretName, optional], ['stagedoor', undefined]);
      for (const { key } of list(items)) assert.ok(created.includes(String(key)), String(key));
    }
    for (const [name, value] of Object.entries(environmentOf(gatewayOf(objects).gateway))) {
      if (!name.endsWith('_FILE')) continue;
      assert.match(value, /^\/run\/secrets\/stagedoor\/[\w-]+$/);
      assert.ok(created.includes(value.split('/').at(-1)), value);
    }
  }
});

rendered('open the public port to all, and the port for other gateways only to them', async () => {
  const [policy = {}] = of(await render('base'), 'NetworkPolicy');
  const { podSelector, policyTypes, ingress } = at(policy, 'spec');
  assert.equal(policyTypes, ['Ingress']);
  assert.equal(ingress, [
    { ports: [{ port: 'http', protocol: 'TCP' }] },
    { from: [{ podSelector }], ports: [{ port: 'peer', protocol: 'TCP' }] },
  ]);
});

rendered('replace pods one at a time, without privileges and without a writable image', async () => {
  const objects = await render('base');
  const { deployment, spec, gateway } = gatewayOf(objects);
  const { replicas, minReadySeconds, strategy } = at(deployment, 'spec');
  assert.equal([replicas, minReadySeconds], [3, 15]);
  assert.equal(strategy, { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } });
  const { runAsNonRoot } = at(spec, 'securityContext');
  const { readOnlyRootFilesystem, allowPrivilegeEscalation, capabilities } = at(gateway, 'securityContext');
  assert.equal([runAsNonRoot, readOnlyRootFilesystem, allowPrivilegeEscalation], [true, true, false]);
  assert.equal(capabilities, { drop: ['ALL'] });
  const [scaler = {}] = of(objects, 'HorizontalPodAutoscaler');
  assert.is(at(scaler, 'spec').minReplicas, replicas);
  assert.equal(at(scaler, 'spec', 'behavior', 'scaleDown').policies, [
    { type: 'Pods', value: 1, periodSeconds: 60 },
  ]);
  const [node = {}] = list(gateway.env).filter(({ name }) => name === 'GATEWAY_NODE_ID');
  assert.is(at(node, 'valueFrom', 'fieldRef').fieldPath, 'metadata.name');
});

const serves = test.needs(hasKubectl && database.url, database.skip || 'kubectl is not installed');
serves('describe gateways that start at once on an empty database, and serve a call', async () => {
  const { gateway } = gatewayOf(await render('base'));
  const fresh = await freshDatabase({ url: database.url ?? '' });
  const backend = await startHttpServer({ name: 'far' });
  const secrets = {
    'database-url': fresh.url,
    'secret-key': 'a signing key that is long enough: 32 bytes',
    'admin-password': 'correct horse battery',
  };
  await mkdir(folder('secrets'));
  for (const [name, value] of Object.entries(secrets)) await writeFile(folder('secrets', name), `${value}\n`);
  const written = Object.entries(environmentOf(gateway)).map(([name, value]) => [
    name,
    value.replace('/run/secrets/stagedoor', folder('secrets')),
  ]);
  const env = {
    ...{ ...AS_IT_COMES, MCP_GATEWAY_HOST: '', GATEWAY_HOST: '' },
    ...Object.fromEntries(written),
    // Here all three have one address.
    ...{ GATEWAY_CLUSTER_LISTEN: '', GATEWAY_METRICS_HOST: '127.0.0.1', GATEWAY_SHUTDOWN_DELAY: '0' },
  };
  const programs: Program[] = [];
  const probed: string[] = [];
  try {
    for (const name of ['stagedoor-1', 'stagedoor-2', 'stagedoor-3']) {
      const port = String(await freePort());
      const metricsPort = String(await freePort());
      probed.push(`http://127.0.0.1:${metricsPort}`);
      const own = { GATEWAY_NODE_ID: name, GATEWAY_PORT: port, GATEWAY_METRICS_PORT: metricsPort };
      programs.push(new Program(['gateway', 'start'], { env: { ...env, ...own } }));
    }
    const urls = await Promise.all(programs.map(async (one) => local(await one.url())));
    for (const url of probed)
      for (const path of ['/livez', '/readyz']) await untilStatus(200, () => caller(url)(`GET ${path}`));
    const [first = '', second = ''] = urls;
    const admin = async (url: string) => caller(url, await tokenOf(url, 'admin', secrets['admin-password']));
    const instance = { template_name: 'far', instance: { id: 'one', endpoint: backend.url } };
    assert.is((await (await admin(first))('POST /gateway/register?wait=10', instance)).status, 201);
    const other = await admin(second);
    const answer = await untilStatus(200, () => other('POST /mcp/far/tools/call', { name: 'name' }));
    assert.is(toolText(answer), 'far');
    const program = { template_name: 'near', id: 'one', command: 'true' };
    for (const [field, value] of [
      ['node', 'stagedoor-1'],
      ['working_dir', '/usr'],
    ] as const) {
      const refused = await other('POST /gateway/register', { ...program, [field]: value });
      assert.is(refused.status, 422);
      assert.match(JSON.stringify(refused.body), `"loc":["body","${field}"]`);
      assert.match(JSON.stringify(refused.body), 'its name is not used again after it ends');
    }
    assert.is(
      field(
        await other('POST /gateway/register', { ...program, working_dir: '/usr', node: 'any' }),
        'node_id',
      ),
      'any',
    );
    for (const program of programs) program.signal('SIGTERM');
    assert.equal(await Promise.all(programs.map(async (program) => (await program.end()).code)), [0, 0, 0]);
  } finally {
    await Promise.all(programs.map((program) => program.remove()));
    await backend.close();
    await fresh.drop();
  }
});

test.run();

async function render(path: string): Promise<readonly Json[]> {
  const { stdout } = await run('kubectl', ['kustomize', `${kubernetes}/${path}`]);
  return parseAllDocuments(stdout).map((document) => objectOr(document.toJS()));
}

/** What the compiler says about these objects as literals of their types: literals may have no other fields. */
async function typeErrors(objects: readonly Json[]): Promise<readonly string[]> {
  const lines = objects.map((object, index) => {
    const { apiVersion, kind } = object;
    const from = TYPES[String(apiVersion)];
    assert.ok(from, `no types for ${apiVersion} ${kind}`);
    const type = `import('${repository}node_modules/kubernetes-types/${from}').${kind}`;
    return `export const object${index}: ${type} = ${JSON.stringify(object)};`;
  });
  await writeFile(folder('objects.ts'), lines.join('\n'));
  const options = { noEmit: true, strict: true, types: [], module: 'esnext', moduleResolution: 'bundler' };
  await writeFile(
    folder('tsconfig.json'),
    JSON.stringify({ compilerOptions: options, files: ['objects.ts'] }),
  );
  const compiler = `${repository}node_modules/typescript/bin/tsc`;
  const ended = run(process.execPath, [compiler, '-p', folder('tsconfig.json'), '--pretty', 'false']);
  const { stdout } = await ended.catch((failed) => failed);
  return String(stdout)
    .split('\n')
    .filter((line) => line !== '');
}

/** The container of the gateway, and the specification of its pod. */
function gatewayOf(objects: readonly Json[]): {
  readonly deployment: Json;
  readonly spec: Json;
  readonly gateway: Json;
} {
  const [deployment = {}] = of(objects, 'Deployment').filter(
    (one) => at(one, 'metadata').name === 'stagedoor',
  );
  const spec = at(deployment, 'spec', 'template', 'spec');
  const [gateway = {}] = list(spec.containers);
  return { deployment, spec, gateway };
}

/** The variables that have a value of their own. */
function environmentOf(container: Json): Readonly<Record<string, string>> {
  const own = list(container.env).filter(({ value }) => value !== undefined);
  return Object.fromEntries(own.map(({ name, value }) => [String(name), String(value)]));
}

function containersOf(pod: Json): readonly Json[] {
  return list(at(pod, 'spec').containers);
}

function of(objects: readonly Json[], wanted: string): readonly Json[] {
  return objects.filter(({ kind }) => kind === wanted);
}

/** The object at this path; the same object as in the document. */
function at(object: Json, ...path: readonly string[]): Json {
  return path.reduce((inner, name) => objectOr(inner[name]), object);
}

function list(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.map(objectOr) : [];
}

function isWithin(selector: Json, labels: Json): boolean {
  return Object.entries(selector).every(([name, value]) => labels[name] === value);
}

/** The gateway listens on all addresses, as in a pod. */
function local(url: string): string {
  return `http://127.0.0.1:${new URL(url).port}`;
}
