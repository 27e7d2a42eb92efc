/**
 * The body of an alert as its receiver takes it: JSON in whose texts `{{title}}` stands for the title of the message. The
 * form of an alert shows what it comes to while it is typed.
 */

export const PLACEHOLDERS = Object.freeze(
  ['title', 'message', 'app', 'host', 'url', 'type', 'severity', 'tone', 'at', 'id'] as const
)

const EXPECTED = 'a JSON object or list'
const PLACEHOLDER = /\{\{([^{}]*)\}\}/g

/** `template`: JSON. A value cannot leave its text, whatever it holds: it is put in once the JSON has been read. */
export function fillTemplate (template: string, values: Readonly<Record<string, string>>): object {
  return JSON.parse(template,
    (_name, part) =>
      typeof part === 'string'
        ? part.replace(PLACEHOLDER, (_all, name) => Object.hasOwn(values, name.trim()) ? values[name.trim()] : '')
        : part)
}

/** @returns what is wrong with it; null: nothing */
export function templateFlaw (template: string): { expected: string, received: string } | null {
  const unknown: string[] = []
  try {
    const read = JSON.parse(template, (name, part) => {
      unknown.push(...[...name.matchAll(PLACEHOLDER)].map(([all]) => `${all} in a name`))
      if (typeof part === 'string') unknown.push(...unknownIn(part))
      return part
    })
    if (typeof read !== 'object' || read === null) return { expected: EXPECTED, received: 'another value' }
  } catch (error) {
    // The message of a SyntaxError quotes the text, which may hold a key.
    if (!(error instanceof SyntaxError)) throw error
    return { expected: EXPECTED, received: 'a text that is no JSON' }
  }
  return unknown.length === 0
    ? null
    : { expected: `placeholders among ${PLACEHOLDERS.map((name) => `{{${name}}}`).join(', ')}`,
      received: unknown[0].slice(0, 60) }
}

function unknownIn (text: string): string[] {
  return Array.from(text.matchAll(PLACEHOLDER)).filter(([, name]) =>
    !PLACEHOLDERS.some((known) => known === name.trim())
  ).map(([all]) => all)
}
