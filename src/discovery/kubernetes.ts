// Kubernetes: the pods of labelled Services, and those of Deployments of another platform. Each ready pod is
// one instance. cluster.ts has the connection to the API server.

import { hash } from 'node:crypto';
import type { FoundInstance, SkippedInstance, SourceListing } from '../domain/instances/found-instances.ts';
import { instanceIdOf } from '../domain/instances/instance.ts';
import { isJsonObject, type JsonObject, jsonObjectsIn } from '../domain/json/json.ts';
import { joinHostPort } from '../domain/local-address.ts';
import { isTemplateId } from '../domain/template-name.ts';
import { Cluster, clusterAccess, type Resource } from './cluster.ts';
import type { DiscoveryContext, Provider, Source } from './provider.ts';

/** The label of a Service: its pods are instances of that template. */
const TEMPLATE = 'stagedoor/template';
/** The names of the port of a Service with several ports, best first. */
const PORT_NAMES: readonly unknown[] = ['mcp', 'http'];
/** A convention of another platform: the label of its Deployments, and the label with the template. */
const MANAGED = 'app.kubernetes.io/managed-by=mcp-platform';
const MANAGED_TEMPLATE = 'mcp-template.io/template-name';

const SERVICES: Resource = { api: '/api/v1', plural: 'services' };
const SLICES: Resource = { api: '/apis/discovery.k8s.io/v1', plural: 'endpointslices' };
const DEPLOYMENTS: Resource = { api: '/apis/apps/v1', plural: 'deployments', labelSelector: MANAGED };
const RESOURCES = [SERVICES, SLICES, DEPLOYMENTS] as const;

export const kubernetes: Provider = async (context) => {
  const access = await clusterAccess(context);
  return access === undefined ? [] : [clusterSource(new Cluster(access, context), context)];
};

function clusterSource(cluster: Cluster, { namespace, hintsOf, signal }: DiscoveryContext): Source {
  const server = `k8s:${hash('sha256', cluster.address).slice(0, 16)}`;
  const originOf = (name: unknown) => `${server}/${name}`;
  const origin = namespace === '*' ? originOf('') : originOf(namespace);
  const where = namespace === '*' ? 'all namespaces' : `namespace ${namespace}`;
  return {
    address: `${cluster.address} (${where})`,
    origin,
    list: async (): Promise<SourceListing> => {
      const lists = await Promise.all(RESOURCES.map((resource) => cluster.list(resource)));
      return { origin, ...listingOf(lists, hintsOf, originOf) };
    },
    watch: async (onChange, onOpen) => {
      // The first one to end ends the other watches.
      const ended = new AbortController();
      const either = AbortSignal.any([signal, ended.signal]);
      const versions = await Promise.all(RESOURCES.map((each) => cluster.version(each)));
      onOpen();
      try {
        await Promise.race(
          RESOURCES.map((each, index) =>
            cluster.watch(each, versions[index] ?? '', () => onChange(), either),
          ),
        );
      } finally {
        ended.abort();
      }
    },
  };
}

/** `lists`: one for each of RESOURCES. */
function listingOf(
  [services = [], slices = [], deployments = []]: readonly (readonly JsonObject[])[],
  hintsOf: DiscoveryContext['hintsOf'],
  originOf: (namespace: unknown) => string,
): Omit<SourceListing, 'origin'> {
  const found = new Map<string, FoundInstance>();
  const skipped = new Map<string, SkippedInstance>();
  const slicesOf = Map.groupBy(slices.filter(hasAddresses), serviceKeyOf);
  const podsIn = Map.groupBy(deployments.flatMap(managedPodsOf), (pods) => pods.namespace);
  for (const service of services) {
    const { name, namespace } = metadataOf(service);
    const template = templateOf(service, podsIn.get(namespace) ?? []);
    if (template === undefined) continue;
    const skip = (pod: string, reason: string) =>
      skipped.set(`${template}/${namespace}/${pod}`, { template, name: `${namespace}/${pod}`, reason });
    if (!isTemplateId(template)) {
      skip(String(name), 'its label names no template');
      continue;
    }
    const own = (slicesOf.get(`${namespace}/${name}`) ?? []).toSorted(byAddressType);
    for (const pod of own.flatMap(podsOf)) {
      if ('reason' in pod) skip(pod.name ?? String(name), pod.reason);
      else {
        const id = instanceIdOf(template, pod.uid);
        if (found.has(`${template}/${id}`)) continue;
        const isSse = hintsOf(template)?.transport === 'sse';
        found.set(`${template}/${id}`, {
          template,
          id,
          name: `${namespace}/${pod.name}`,
          origin: originOf(namespace),
          input: { endpoint: pod.endpoint, ...(isSse ? { transport: 'sse' as const } : {}) },
        });
      }
    }
  }
  return { found: [...found.values()], skipped: [...skipped.values()] };
}

/** A pod of a slice that takes calls; or an endpoint that does not, with the reason, and the name if it is a pod. */
type SlicedPod =
  | { readonly name: string; readonly uid: string; readonly endpoint: string }
  | { readonly name: string | undefined; readonly reason: string };

/** The pods of a slice, without those that have no address. */
function podsOf(slice: JsonObject): readonly SlicedPod[] {
  const port = portOf(slice);
  return jsonObjectsIn(slice.endpoints).flatMap((endpoint): SlicedPod | [] => {
    const { kind, name: written, uid } = fieldsOf(endpoint.targetRef);
    const [address] = Array.isArray(endpoint.addresses) ? endpoint.addresses : [];
    if (kind !== 'Pod' || typeof uid !== 'string')
      return { name: undefined, reason: 'it has an endpoint that is not a pod' };
    const name = String(written);
    if (fieldsOf(endpoint.conditions).ready === false) return { name, reason: 'it is not ready' };
    if (typeof port === 'string') return { name, reason: port };
    if (typeof address !== 'string') return [];
    return { name, uid, endpoint: `http://${joinHostPort(address, port)}` };
  });
}

/** The pods of a Deployment of that platform. */
interface ManagedPods {
  readonly namespace: unknown;
  readonly labels: JsonObject;
  readonly template: string;
}

/** None for a Deployment that names no template. */
function managedPodsOf(deployment: JsonObject): ManagedPods[] {
  const own = metadataOf(deployment);
  const { labels } = metadataOf(fieldsOf(fieldsOf(deployment.spec).template));
  const template = own.labels[MANAGED_TEMPLATE] ?? labels[MANAGED_TEMPLATE];
  return typeof template === 'string' ? [{ namespace: own.namespace, labels, template }] : [];
}

/** The template in the label of the Service, else that of the pods that it selects, of those in its namespace; undefined: none. */
function templateOf(service: JsonObject, pods: readonly ManagedPods[]): string | undefined {
  const { labels: own } = metadataOf(service);
  if (typeof own[TEMPLATE] === 'string') return own[TEMPLATE];
  const selector = Object.entries(fieldsOf(fieldsOf(service.spec).selector));
  if (selector.length === 0) return undefined;
  const selected = pods.find(({ labels }) => selector.every(([name, value]) => labels[name] === value));
  return selected?.template;
}

function hasAddresses({ addressType }: JsonObject): boolean {
  return addressType === 'IPv4' || addressType === 'IPv6';
}

/** The namespace and the name of the Service of a slice. */
function serviceKeyOf(slice: JsonObject): string {
  const { labels, namespace } = metadataOf(slice);
  return `${namespace}/${labels['kubernetes.io/service-name']}`;
}

/** Orders slices of addresses, IPv4 first: a pod with addresses of both families is in two slices. */
function byAddressType(one: JsonObject, other: JsonObject): number {
  return String(one.addressType).localeCompare(String(other.addressType));
}

/** The port with a usual name, else the only one; else the reason why there is none, as a clause. */
function portOf(slice: JsonObject): number | string {
  const ports = jsonObjectsIn(slice.ports).filter(({ protocol = 'TCP' }) => protocol === 'TCP');
  const named = PORT_NAMES.map((name) => ports.find((port) => port.name === name)).find(Boolean);
  const { port } = named ?? ports[0] ?? {};
  if (typeof port !== 'number') return 'it has no TCP port';
  return named !== undefined || ports.length === 1 ? port : 'it has several ports: name one mcp';
}

function metadataOf(item: JsonObject) {
  const { name, namespace, labels } = fieldsOf(item.metadata);
  return { name, namespace, labels: fieldsOf(labels) };
}

function fieldsOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}
