// How a gateway opens its instances: its client name, denied networks, timeouts, and the meaning of commands.

import { backendUnavailable } from '../domain/error-catalogue.ts';
import { LIMITS } from '../domain/limits.ts';
import { VERSION } from '../domain/version.ts';
import { exposureOf, type ProtectedPath } from '../templates/command-exposure.ts';
import type { TemplateRules } from '../templates/definition.ts';
import { launchOf, withTemplateEnvironment } from '../templates/launch.ts';
import { Requirements } from '../templates/requirements.ts';
import { type Open, type OpeningOptions, openingWith } from '../transports/opening.ts';
import { childEnvironment } from '../transports/stdio/child-process.ts';
import { Reaper } from '../transports/stdio/process-group.ts';

/** How the gateway introduces itself, to backends and to clients. */
export const GATEWAY_INFO = { name: 'stagedoor', version: VERSION };

export interface OpenerOptions
  extends Pick<OpeningOptions, 'deniedNetworks' | 'handlers' | 'heldAnswers' | 'scheduler' | 'passEnv'> {
  /** What no command may be handed. Default: nothing. */
  readonly protectedPaths?: readonly ProtectedPath[];
  /** What is said of templates, by their ids. Default: nothing. */
  readonly definitions?: ReadonlyMap<string, TemplateRules>;
}

/** Makes the function that opens instances. `handlers` are looked up when one is opened, so later ones count, too. */
export function openerOf({ protectedPaths = [], definitions, ...options }: OpenerOptions): Open {
  const requirements = new Requirements();
  return openingWith({
    ...options,
    reaper: new Reaper(),
    handshakeTimeoutMs: LIMITS.handshakeMs,
    client: GATEWAY_INFO,
    runInContainer: async (...asked) => (await import('../discovery/exec.ts')).runInContainer(...asked),
    launch: async (definition) => {
      if (definition.container !== undefined) return definition; // what it needs is in the container
      const refusal = await exposureOf(definition, protectedPaths);
      if (refusal !== undefined) throw notStarted(refusal);
      const rules = definitions?.get(definition.template);
      if (definition.command === undefined || rules === undefined) return launchOf(definition);
      const launched = launchOf(withTemplateEnvironment(definition, rules));
      const environment = childEnvironment(launched.env, process.env, process.platform, options.passEnv);
      const unmet = await requirements.unmet(rules.requires ?? [], launched, environment);
      if (unmet !== undefined) throw notStarted(unmet);
      return launched;
    },
  });
}

/** The program is not run; it is looked at again with each attempt to start it. */
function notStarted(why: string) {
  return backendUnavailable(`it is not started: ${why.replace(/\.$/, '')}`, { delivered: 'no' });
}
