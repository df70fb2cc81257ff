// The settings in force, and where each comes from.

import { useSignal } from '@preact/signals';
import { change, get } from '../api.ts';
import { Field } from '../parts/field.tsx';
import { useLoaded } from '../parts/load.ts';
import { attempt } from '../parts/notices.tsx';
import { Empty, Failure, Loading } from '../parts/status.tsx';

interface Setting {
  readonly name: string;
  readonly value: unknown;
  readonly source: 'flag' | 'environment' | 'file' | 'default';
  readonly from?: string;
  readonly description: string;
}

export function SettingsPage() {
  const { data, error, reload } = useLoaded(
    () => get<{ readonly settings: readonly Setting[] }>('gateway/settings'),
    [],
  );
  const filter = useSignal('');
  const onlySet = useSignal(false);
  const shown = data?.settings.filter(
    ({ name, source }) =>
      name.includes(filter.value.toLowerCase()) && !(onlySet.value && source === 'default'),
  );
  return (
    <>
      <h1>Settings</h1>
      <LogLevel />
      <div class="title">
        <h2>In force</h2>
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
          <input
            type="search"
            aria-label="Filter settings"
            placeholder="Filter"
            onInput={(event) => {
              filter.value = event.currentTarget.value;
            }}
          />
        </div>
      </div>
      {error !== undefined && <Failure text={error} onRetry={reload} />}
      {shown === undefined && error === undefined && <Loading what="settings" />}
      {shown?.length === 0 && <Empty title="No setting matches." />}
      {shown !== undefined && shown.length > 0 && (
        <ul class="panel list">
          {shown.map((setting) => (
            <SettingRow key={setting.name} {...setting} />
          ))}
        </ul>
      )}
    </>
  );
}

function SettingRow({ name, value, source, from, description }: Setting) {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return (
    <li class="setting">
      <div>
        <code class="strong">{name}</code>
        <p class="small muted">{description}</p>
      </div>
      <code>{text === '' || text === undefined ? '–' : text}</code>
      <span class={source === 'default' ? 'small muted' : 'small'}>
        {source === 'default' ? 'default' : `${source}${from === undefined ? '' : `: ${from}`}`}
      </span>
    </li>
  );
}

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** It holds until the gateway starts again. */
function LogLevel() {
  const { data, reload } = useLoaded(() => get<{ readonly level: string }>('gateway/log-level'), []);
  if (data === undefined) return null;
  return (
    <div class="short">
      <Field label="Log level" hint="Until the gateway starts again.">
        <select
          value={data.level}
          onChange={async ({ currentTarget: { value: level } }) => {
            await attempt(
              () => change('PATCH', 'gateway/log-level', { level }),
              `The log level is ${level}.`,
            );
            reload();
          }}
        >
          {LEVELS.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      </Field>
    </div>
  );
}
