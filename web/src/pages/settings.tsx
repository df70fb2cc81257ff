// The settings in effect, their meaning and their source. The log level can be changed here.

import { useSignal } from '@preact/signals';
import { change, get } from '../api.ts';
import { duration } from '../format.ts';
import { useLoaded } from '../parts/load.ts';
import { attempt } from '../parts/notices.tsx';
import { Search } from '../parts/search.tsx';
import { Empty, Reading } from '../parts/status.tsx';

interface Setting {
  readonly name: string;
  readonly value: string;
  readonly unit?: string;
  readonly source: keyof typeof SOURCES;
  readonly from?: string;
  readonly description: string;
}

/** The pages of the documentation are not served by the gateway. */
const REFERENCE = 'https://github.com/stagedoor/stagedoor/blob/main/docs/reference/configuration.md';

const SOURCES = {
  default: 'Default',
  flag: 'Command line',
  environment: 'Environment',
  file: 'File',
  runtime: 'Until restart',
} as const;

export function SettingsPage() {
  const { data, error, reload } = useLoaded(
    () => get<{ readonly settings: readonly Setting[] }>('gateway/settings'),
    [],
  );
  const filter = useSignal('');
  const onlySet = useSignal(false);
  const shown = data?.settings.filter(
    ({ name, description, source }) =>
      `${name} ${namesOf(name).join(' ')} ${description}`.toLowerCase().includes(filter.value) &&
      !(onlySet.value && source === 'default'),
  );
  const groups = Object.entries(Object.groupBy(shown ?? [], ({ name }) => namesOf(name)[0]));
  return (
    <>
      <div class="title">
        <h1>Settings</h1>
        <div class="actions">
          <label class="check">
            <input
              type="checkbox"
              onChange={(event) => {
                onlySet.value = event.currentTarget.checked;
              }}
            />
            Only what is set
          </label>
          <Search label="Filter settings" filter={filter} />
        </div>
      </div>
      <p class="lead">
        Set on the command line, in the environment or in <code>gateway.yaml</code>, from the next start on;
        the log level here, at once.{' '}
        <a href={REFERENCE} target="_blank" rel="noreferrer">
          All settings in the documentation
        </a>
      </p>
      <Reading what="settings" isRead={shown !== undefined} error={error} reload={reload} />
      {shown?.length === 0 && <Empty title="No setting matches." />}
      {groups.map(([group, settings = []]) => (
        <section key={group} aria-labelledby={group}>
          <h2 id={group}>{group}</h2>
          <ul class="panel list">
            {settings.map((setting) => (
              <SettingRow key={setting.name} {...setting} onChanged={reload} />
            ))}
          </ul>
        </section>
      ))}
    </>
  );
}

/** `load_balancer.max_retries`: the group "Load balancer" and "Max retries". */
function namesOf(name: string): readonly [string, string] {
  const [first = '', ...rest] = name.split('.').map(titleOf);
  return rest.length === 0 ? ['General', first] : [first, rest.join(' ')];
}

function titleOf(key: string): string {
  return key
    .replace(/_(?:seconds|minutes|days|bytes)$/, '')
    .replaceAll('_', ' ')
    .replace(/\b(?:api|cors|http|id|url)\b|^./g, (word) => word.toUpperCase());
}

function SettingRow({
  name,
  value,
  unit,
  source,
  from,
  description,
  onChanged,
}: Setting & { readonly onChanged: () => void }) {
  const [, title] = namesOf(name);
  return (
    <li class="setting">
      <div>
        <span class="strong">{title}</span> <code class="small muted">{name}</code>
        <p class="small muted">
          {description
            .split('`')
            .map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}
        </p>
      </div>
      {name === 'log_level' ? (
        <LogLevel level={value} onChanged={onChanged} />
      ) : (
        <span>{unit === undefined ? <code>{value || '–'}</code> : measured(Number(value), unit)}</span>
      )}
      <span class={source === 'default' ? 'small muted' : 'small'}>
        {SOURCES[source]}
        {from !== undefined && (
          <>
            : <code>{from}</code>
          </>
        )}
      </span>
    </li>
  );
}

const UNIT_MS: Readonly<Record<string, number>> = { seconds: 1_000, minutes: 60_000 };
const MEBIBYTE = 1_048_576;

/** The value in its unit and, if it is long, in a larger one: "1,800 seconds (30 min)". */
function measured(value: number, unit: string): string {
  const ms = value * (UNIT_MS[unit] ?? 0);
  const text = `${value.toLocaleString('en')} ${value === 1 ? unit.replace(/s$/, '') : unit}`;
  if (unit === 'bytes') return `${text} (${(value / MEBIBYTE).toLocaleString('en')} MiB)`;
  return ms >= 120_000 ? `${text} (${duration(ms)})` : text;
}

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

function LogLevel({ level, onChanged }: { readonly level: string; readonly onChanged: () => void }) {
  return (
    <select
      aria-label="Log level"
      value={level}
      onChange={async ({ currentTarget }) => {
        const { value } = currentTarget;
        const isDone = await attempt(
          () => change('PATCH', 'gateway/log-level', { level: value }),
          `The log level is ${value} until the next start.`,
        );
        if (!isDone) currentTarget.value = level;
        onChanged();
      }}
    >
      {LEVELS.map((each) => (
        <option key={each}>{each}</option>
      ))}
    </select>
  );
}
