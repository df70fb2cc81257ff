// The names that commands had before each was a noun and a verb (ADR 378), and former names of options. They work until the next
// minor version, and neither help nor completion shows them.

const FORMER_NAMES: ReadonlyMap<string, string> = new Map([
  ['gateway deregister', 'instance deregister'],
  ['gateway list', 'instance list'],
  ['gateway drain', 'instance drain'],
  ['gateway resume', 'instance resume'],
  ['gateway delete-template', 'template delete-settings'],
  ['gateway tools', 'tool list'],
  ['gateway call', 'tool call'],
  ['gateway sessions', 'session list'],
  ['gateway end-session', 'session end'],
  ['gateway nodes', 'node list'],
  ['gateway drain-node', 'node drain'],
  ['gateway resume-node', 'node resume'],
  ['gateway users', 'user list'],
  ['gateway set-password', 'user set-password'],
  ['gateway delete-user', 'user delete'],
  ['users', 'user'],
  ['gateway api-keys', 'api-key list'],
  ['gateway revoke', 'api-key revoke'],
  ['gateway clients add', 'client add'],
  ['gateway clients remove', 'client remove'],
  ['gateway clients list', 'client list'],
  ['gateway clients', 'client list'],
  ['gateway grants', 'grant'],
  ['gateway connections', 'connection'],
]);

/** Options by the present name of their command. */
const FORMER_OPTIONS: ReadonlyMap<string, ReadonlyMap<string, string>> = new Map([
  [
    'gateway audit',
    new Map([
      ['--from', '--since'],
      ['--to', '--until'],
    ]),
  ],
]);

/** The command line with the present names of its command and its options. */
export function withPresentNames(argv: readonly string[]): readonly string[] {
  const present = withPresentName(argv);
  const options = FORMER_OPTIONS.get(present.slice(0, 2).join(' '));
  return present.map((word) => {
    const [flag = ''] = word.split('=', 1);
    const option = options?.get(flag);
    return option === undefined ? word : `${option}${word.slice(flag.length)}`;
  });
}

function withPresentName(argv: readonly string[]): readonly string[] {
  // It restarted an instance, too.
  if (/^gateway restart [^-]/.test(argv.slice(0, 3).join(' '))) return ['instance', ...argv.slice(1)];
  for (const length of [3, 2, 1]) {
    const present = FORMER_NAMES.get(argv.slice(0, length).join(' '));
    if (present !== undefined) return [...present.split(' '), ...argv.slice(length)];
  }
  return argv;
}
