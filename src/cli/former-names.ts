// The names that commands had before each was a noun and a verb (ADR 378). They work until the next minor version, and
// neither help nor completion shows them.

const FORMER_NAMES: Readonly<Record<string, string>> = {
  'gateway deregister': 'instance deregister',
  'gateway list': 'instance list',
  'gateway drain': 'instance drain',
  'gateway resume': 'instance resume',
  'gateway delete-template': 'template delete-settings',
  'gateway tools': 'tool list',
  'gateway call': 'tool call',
  'gateway sessions': 'session list',
  'gateway end-session': 'session end',
  'gateway nodes': 'node list',
  'gateway drain-node': 'node drain',
  'gateway resume-node': 'node resume',
  'gateway users': 'user list',
  'gateway set-password': 'user set-password',
  'gateway delete-user': 'user delete',
  users: 'user',
  'gateway api-keys': 'api-key list',
  'gateway revoke': 'api-key revoke',
  'gateway clients add': 'client add',
  'gateway clients remove': 'client remove',
  'gateway clients list': 'client list',
  'gateway clients': 'client list',
  'gateway grants': 'grant',
  'gateway connections': 'connection',
};

/** The command line with the present name of its command. */
export function withPresentName(argv: readonly string[]): readonly string[] {
  // It restarted an instance, too.
  if (/^gateway restart [^-]/.test(argv.slice(0, 3).join(' '))) return ['instance', ...argv.slice(1)];
  for (const length of [3, 2, 1]) {
    const present = FORMER_NAMES[argv.slice(0, length).join(' ')];
    if (present !== undefined) return [...present.split(' '), ...argv.slice(length)];
  }
  return argv;
}
