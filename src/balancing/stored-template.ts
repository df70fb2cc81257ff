// A template as it is stored, and its changes.

import type { TemplateAuth } from '../domain/instances/instance.ts';
import { definedFields } from '../domain/json/json.ts';
import type { LoadBalancerChange, LoadBalancerSettings } from './policy-schemas.ts';

/** A template as it is stored: its name and the settings that differ from the defaults. */
export interface StoredTemplate {
  readonly name: string;
  readonly loadBalancer: LoadBalancerSettings;
  /** The authorization of instances that have none of their own. */
  readonly auth?: TemplateAuth;
}

/** A change of a template. `null` removes a setting; an undefined field changes nothing. */
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
  const entries = Object.entries({ ...before.loadBalancer, ...definedFields(change.loadBalancer) });
  const loadBalancer = Object.fromEntries(entries.filter(([, value]) => value !== null));
  return { name, loadBalancer, ...definedFields({ auth }) };
}
