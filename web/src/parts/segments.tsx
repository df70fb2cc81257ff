// Buttons of which one is pressed: the choice among a few values.

interface SegmentsProps<T extends string> {
  readonly label: string;
  /** Each value with the text of its button. */
  readonly options: readonly (readonly [value: T, text: string])[];
  readonly value: T;
  readonly onChoose: (value: T) => void;
}

export function Segments<T extends string>({ label, options, value, onChoose }: SegmentsProps<T>) {
  return (
    <fieldset class="segments" aria-label={label}>
      {options.map(([each, text]) => (
        <button key={each} type="button" aria-pressed={each === value} onClick={() => onChoose(each)}>
          {text}
        </button>
      ))}
    </fieldset>
  );
}
