// A template as it is stored, its changes, and the policy that its settings and the defaults of the gateway make.

import type { TemplateAuth } from '../domain/instances/instance.ts';
import { definedFields } from '../domain/json/json.ts';
import { policyFrom, type TemplatePolicy } from './policy.ts';
import type { LoadBalancerChange, LoadBalancerSettings } from './policy-schemas.ts';

/** The settings after a change; an undefined field changes nothing. */
function changedLoadBalancer(before: LoadBalancerSettings, change: LoadBalancerChange): LoadBalancerSettings {
  const entries = Object.entries({ ...before, ...definedFields(change) });
  return Object.fromEntries(entries.filter(([, value]) => value !== null));
}

/** A template as it is stored: its name and the settings that differ from the defaults. */
export interface StoredTemplate {
  readonly name: string;
  readonly loadBalancer: LoadBalancerSettings;
  /** The authorization of instances that have none of their own. */
  readonly auth?: TemplateAuth;
}

/** A change of a template. `null` removes a setting. */
export interface TemplateChange {
  readonly name: string;
  readonly loadBalancer: LoadBalancerChange;
  readonly auth?: TemplateAuth | null | undefined;
}

/** The template after a change. */
export function changedTemplate(
  before: Omit<StoredTemplate, 'name'>,
  change: TemplateChange,
): StoredTemplate {
  const { name } = change;
  const auth = change.auth === undefined ? before.auth : (change.auth ?? undefined);
  const loadBalancer = changedLoadBalancer(before.loadBalancer, change.loadBalancer);
  return { name, loadBalancer, ...definedFields({ auth }) };
}

/** The policy of a template: its own settings over the defaults of the gateway. */
export function policyOf(loadBalancer: LoadBalancerSettings, defaults: TemplatePolicy): TemplatePolicy {
  const own = new Map<string, unknown>(Object.entries(loadBalancer));
  const present = new Map<string, unknown>(Object.entries(defaults));
  return policyFrom(({ key, name, values, setBy }) => {
    const value = setBy === 'gateway' ? undefined : own.get(name);
    return value === undefined ? present.get(key) : values.read(value);
  });
}
