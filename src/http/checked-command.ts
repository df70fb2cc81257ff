// A command is code that this machine will run: who may register which one. The rule for those who are no admins is
// domain/command-policy.ts. Source: decisions, "Commands are code" and "On or off".

import { mayDo, type Principal } from '../domain/account.ts';
import { BEHIND_A_PROXY, insufficientPermissions } from '../domain/account-errors.ts';
import { commandRefusal } from '../domain/command-policy.ts';
import { splitCommand } from '../domain/command-words.ts';
import type { InstanceInput } from '../domain/instance.ts';
import { commandNotAllowed } from '../domain/registry-errors.ts';
import type { RequestState } from './request-state.ts';
import type { Services } from './route.ts';
import { declaredVariables } from './server-config.ts';

/** Who wants to register what, and for which template. */
export interface CommandRequest {
  readonly template: string;
  readonly instance: InstanceInput;
  readonly principal: Principal;
  readonly request: Pick<RequestState, 'isLocal' | 'origin'>;
}

/**
 * The instance as it may be registered: of somebody who is no admin the command is split into the very words that were
 * checked. Throws COMMAND_NOT_ALLOWED, and INSUFFICIENT_PERMISSIONS for a command that somebody else forces. Without a command there is nothing to check.
 */
export function checkedCommand(
  { template, instance, principal, request }: CommandRequest,
  { auth, allowedCommands, definitions }: Pick<Services, 'auth' | 'allowedCommands' | 'definitions'>,
): InstanceInput {
  if (instance.command === undefined) return instance;
  if (!auth.isEnabled) {
    // Being on this machine is what shows that somebody may run programs on it.
    if (request.isLocal && request.origin === undefined) return instance;
    throw commandNotAllowed(
      `While authentication is off, commands are registered from this machine only. ${BEHIND_A_PROXY}`,
    );
  }
  if (mayDo(principal, ['admin'])) return instance;
  if (instance.force === true) throw insufficientPermissions(['admin']);
  const words = wordsOf(instance);
  const wanted = { words, workingDir: instance.working_dir, env: instance.env_vars };
  const refusal = commandRefusal(wanted, {
    allowed: allowedCommands,
    declaredNames: declaredVariables(definitions.get(template)),
  });
  if (refusal !== undefined) throw commandNotAllowed(refusal);
  const [command = '', ...args] = words;
  return { ...instance, command, args };
}

/** Empty for a command that cannot be split: nothing allows it. */
function wordsOf({ command = '', args }: InstanceInput): readonly string[] {
  if (args !== undefined) return [command, ...args];
  const split = splitCommand(command);
  return 'words' in split ? split.words : [];
}
