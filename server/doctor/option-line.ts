import path from 'node:path'
import { quoteWord } from '../../public/command-text.ts'
import { OPTIONS } from '../config/option-list.ts'
import type { Setting } from '../api/shapes.ts'
import type { Mend } from './finding.ts'

type Value = NonNullable<Mend['sets']>['value']
/** `configFile`: null where none sets an option */
type Configured = { settings: readonly Setting[], configFile: string | null }

/**
 * The line that sets these options: for the config file, where the app has one, else for the command that starts it.
 * What the file has in the same groups stays. `wanted`: by the names of the options.
 */
export function optionLine ({ settings, configFile }: Configured, wanted: Record<string, unknown>): Mend {
  const names = Object.keys(wanted)
  const isByFlag = settings.some(({ name, source }) => names.includes(name) && source === 'flag')
  const flags = configFile === null || isByFlag ? flagsOf(wanted) : null
  const isLive = names.length === 1 && OPTIONS.find(({ name }) => name === names[0])?.takesEffect === 'now'
  const sets = isLive ? { sets: { name: names[0], value: wanted[names[0]] as Value } } : {}
  if (flags !== null) return { how: 'flags', text: flags, where: 'clusterdeck start', ...sets }
  return { how: 'option', text: linesOf(settings, wanted, path.extname(configFile ?? '') === '.json'),
    where: configFile ?? 'clusterdeck.config.mjs', ...sets }
}

/** Null: no flag can say it */
function flagsOf (wanted: Record<string, unknown>): string | null {
  const words = Object.entries(wanted).map(([name, value]) => {
    const option = OPTIONS.find((each) => each.name === name)
    if (!option || option.kind === 'file') return null
    if (!Array.isArray(value)) return `${option.flag} ${quoteWord(String(value))}`
    const { separator = ',' } = option
    return value.some((part) => String(part).includes(separator))
      ? null
      : `${option.flag} ${quoteWord(value.join(separator))}`
  })
  return words.includes(null) ? null : words.join(' ')
}

function linesOf (settings: readonly Setting[], wanted: Record<string, unknown>, isJson: boolean) {
  const groups = new Set(Object.keys(wanted).map((name) => name.split('.')[0]))
  const kept = settings.filter(({ name, source, isSecret }) =>
    groups.has(name.split('.')[0]) && source === 'file' && !isSecret
  )
  const nested: Nested = {}
  for (const [name, value] of [...kept.map((each) => [each.name, each.value] as const), ...Object.entries(wanted)])
    setAt(nested, name.split('.'), value)
  return Object.entries(nested).map(([key, value]) =>
    isJson ? `${JSON.stringify(key)}: ${JSON.stringify(value)}` : `${key}: ${codeOf(value)}`
  ).join(', ')
}

type Nested = { [key: string]: unknown }

function setAt (group: Nested, [key, ...below]: string[], value: unknown) {
  if (below.length === 0) group[key] = value
  else setAt((group[key] ??= {}) as Nested, below, value)
}

/** @returns JavaScript, as people write it */
function codeOf (value: unknown): string {
  if (typeof value === 'string')
    return `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll('\'', '\\\'')}'`
  if (Array.isArray(value)) return `[${value.map(codeOf).join(', ')}]`
  if (typeof value === 'object' && value !== null)
    return `{ ${
      Object.entries(value).map(([key, inner]) => `${/^\w+$/.test(key) ? key : codeOf(key)}: ${codeOf(inner)}`).join(
        ', '
      )
    } }`
  return String(value)
}
