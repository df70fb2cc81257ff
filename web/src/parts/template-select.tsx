// Chooses one of the templates.

interface TemplateSelectProps {
  readonly names: readonly string[];
  readonly value: string | undefined;
  readonly onChange: (name: string) => void;
}

export function TemplateSelect({ names, value, onChange }: TemplateSelectProps) {
  // A template in the address that is not in the list is still shown as selected.
  const shown = value === undefined || names.includes(value) ? names : [value, ...names];
  if (shown.length === 0) return null;
  return (
    <select aria-label="Template" value={value} onChange={(event) => onChange(event.currentTarget.value)}>
      {shown.map((name) => (
        <option key={name} value={name}>
          {name || 'All templates'}
        </option>
      ))}
    </select>
  );
}
