import path from 'node:path'
import { quoteWord } from '../../public/command-text.js'
import { OPTIONS } from '../config/option-list.js'

/** @typedef {import('../config/settings.js').Setting} Setting */
/** @typedef {{ settings: readonly Setting[], configFile: string | null }} Configured  `configFile`: null where none sets an option */

/**
 * The line that sets these options: for the config file, where the app has one, else for the command that starts it. What the file has
 * in the same groups stays.
 * @param {Configured} configured @param {Record<string, unknown>} wanted  by the names of the options
 * @returns {import('./finding.js').Mend}
 */
export function optionLine ({ settings, configFile }, wanted) {
  const names = Object.keys(wanted)
  const isByFlag = settings.some(({ name, source }) => names.includes(name) && source === 'flag')
  const flags = configFile === null || isByFlag ? flagsOf(wanted) : null
  if (flags !== null) return { how: 'flags', text: flags, where: 'clusterdeck start' }
  return { how: 'option', text: linesOf(settings, wanted, path.extname(configFile ?? '') === '.json'), where: configFile ?? 'clusterdeck.config.mjs' }
}

/** @param {Record<string, unknown>} wanted @returns {string | null} null: no flag can say it */
function flagsOf (wanted) {
  const words = Object.entries(wanted).map(([name, value]) => {
    const option = OPTIONS.find((each) => each.name === name)
    if (!option || option.kind === 'file') return null
    if (!Array.isArray(value)) return `${option.flag} ${quoteWord(String(value))}`
    const { separator = ',' } = option
    return value.some((part) => String(part).includes(separator)) ? null : `${option.flag} ${quoteWord(value.join(separator))}`
  })
  return words.includes(null) ? null : words.join(' ')
}

/** @param {readonly Setting[]} settings @param {Record<string, unknown>} wanted @param {boolean} isJson */
function linesOf (settings, wanted, isJson) {
  const groups = new Set(Object.keys(wanted).map((name) => name.split('.')[0]))
  const kept = settings.filter(({ name, source, isSecret }) => groups.has(name.split('.')[0]) && source === 'file' && !isSecret)
  /** @type {Record<string, unknown>} */
  const nested = {}
  for (const [name, value] of [...kept.map((each) => /** @type {const} */ ([each.name, each.value])), ...Object.entries(wanted)]) setAt(nested, name.split('.'), value)
  return Object.entries(nested).map(([key, value]) => isJson ? `${JSON.stringify(key)}: ${JSON.stringify(value)}` : `${key}: ${codeOf(value)}`).join(', ')
}

/** @param {Record<string, any>} group @param {string[]} keys @param {unknown} value */
function setAt (group, [key, ...below], value) {
  if (below.length === 0) group[key] = value
  else setAt(group[key] ??= {}, below, value)
}

/** @param {unknown} value @returns {string} JavaScript, as people write it */
function codeOf (value) {
  if (typeof value === 'string') return `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`
  if (Array.isArray(value)) return `[${value.map(codeOf).join(', ')}]`
  if (typeof value === 'object' && value !== null) return `{ ${Object.entries(value).map(([key, inner]) => `${/^\w+$/.test(key) ? key : codeOf(key)}: ${codeOf(inner)}`).join(', ')} }`
  return String(value)
}
