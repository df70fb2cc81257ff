// Actions of an operator on instances and templates. The answer is the new record of the instance, which is shown at once.

import { change } from './api.ts';
import { attempt } from './parts/notices.tsx';
import { readAll, storeInstance } from './store.ts';
import type { Instance } from './types.ts';

export type Command = 'drain' | 'resume' | 'restart';

const DONE: Readonly<Record<Command, string>> = {
  drain: 'is draining: no new calls, running calls finish.',
  resume: 'accepts calls again.',
  restart: 'restarts after its running calls.',
};

export function command(instance: Instance, name: Command): Promise<boolean> {
  return attempt(
    async () => storeInstance(await change<Instance>('POST', `${pathOf(instance)}/${name}`)),
    `${instance.id} ${DONE[name]}`,
  );
}

export function setWeight(instance: Instance, weight: number): Promise<boolean> {
  return attempt(
    async () => storeInstance(await change<Instance>('PATCH', pathOf(instance), { weight })),
    `${instance.id} has the weight ${weight}.`,
  );
}

export function deregister({ template_name: template, id }: Instance): Promise<unknown> {
  return change('DELETE', `gateway/deregister/${template}/${encodeURIComponent(id)}`);
}

export function deleteTemplate(name: string): Promise<unknown> {
  return change('DELETE', `gateway/templates/${name}`);
}

/** `settings`: of the load balancer, or `auth`. */
export function setTemplate(template: string, settings: Readonly<Record<string, unknown>>): Promise<boolean> {
  return attempt(
    () => change('PATCH', `gateway/templates/${template}`, settings),
    `The settings of ${template} are in force.`,
  ).finally(readAll);
}

function pathOf({ template_name: template, id }: Instance): string {
  return `gateway/instances/${template}/${encodeURIComponent(id)}`;
}
