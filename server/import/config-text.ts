import { OPTIONS } from '../config/option-list.ts'
import { commentLines, Expression, wrapLines, literalOf, propertyName } from './literal.ts'
import { isAlone, type App, type Conversion, type ForeignApp } from './convert.ts'

/** Writes the text of `clusterdeck.config.mjs`. `source`: the file that was read; `remarks`: come first. */
export function configText ({ apps, foreign, items }: Conversion,
  { source, remarks = [] }: { source: string, remarks?: string[] })
{
  const hasOne = isAlone({ apps })
  const values = apps.flatMap(({ settings }) => [...settings.values()])
  const modules = [...new Set(values.flatMap((value) => value instanceof Expression ? value.needs ?? [] : []))]
  /** What is explained already. */
  const said: Set<string> = new Set()
  const start = hasOne ? 'it by: clusterdeck start' : 'all by: clusterdeck up --detach'
  const config = hasOne
    ? `export default {\n${appText(apps[0], '  ', said)}\n}`
    : `export default {\n  apps: {\n${
      apps.map((app) => `    ${propertyName(app.name)}: {\n${appText(app, '      ', said)}\n    }`).join(',\n')
    }\n  }\n}`
  return [
    [`Made by clusterdeck import from ${source}. Start ${start}`, ...remarks].map((remark) => commentLines(remark))
      .join('\n'),
    ...(modules.length > 0 ? [modules.map((name) => `import ${name} from 'node:${name}'`).join('\n')] : []),
    config,
    ...items.filter(({ fate }) => fate === 'left out').map(({ key, note }) =>
      commentLines(`Left out: ${key}. ${note}`)
    ),
    ...foreign.map((app) => foreignText(app).split('\n').map((line) => `// ${line}`.trimEnd()).join('\n'))
  ].join('\n\n') + '\n'
}

function appText ({ settings, items, notes }: App, indent: string, said: Set<string>) {
  const isNew = (text: string) => !said.has(text) && Boolean(said.add(text))
  const options = [...settings].toSorted(([one], [other]) => placeOf(one) - placeOf(other)).map(([name, value]) => ({
    path: name.split('.'),
    value,
    notes: notesOf(name, items, notes).filter(isNew)
  }))
  const left = items.filter(({ fate }) => fate === 'left out')
  const first = left.filter(({ key, note }) => isNew(`${key}: ${note}`))
  const again = left.filter((item) => !first.includes(item)).map(({ key }) => key)
  return [groupText(options, indent),
    ...(first.length > 0
      ? [commentLines('Left out:', indent), ...first.map(({ key, note }) =>
        commentLines(`${key}: ${note}`, indent, '  ')
      )]
      : []),
    ...(again.length > 0 ? [commentLines(`Left out, as explained above: ${again.join(', ')}`, indent, '  ')] : [])]
    .join('\n')
}

/** Collects the remarks on an option, and those of keys whose first option it is. */
function notesOf (name: string, items: App['items'], notes: App['notes']) {
  const ofKeys = items.filter(({ to, note }) => to[0] === name && note !== null).map(({ key, note }) =>
    `${key}: ${note}`
  )
  return [...notes.filter(({ option }) => option === name).map(({ text }) => text), ...ofKeys]
}

/** `fields`: in their order */
function groupText (fields: { path: string[], value: unknown, notes: string[] }[], indent: string): string {
  const heads = [...new Set(fields.map(({ path: [head] }) => head))]
  return heads.map((head, index) => {
    const here = fields.filter(({ path }) => path[0] === head)
    const end = index === heads.length - 1 ? '' : ','
    if (here[0].path.length > 1) {
      const inner = here.map((field) => ({ ...field, path: field.path.slice(1) }))
      return `${indent}${head}: {\n${groupText(inner, `${indent}  `)}\n${indent}}${end}`
    }
    const [{ value, notes }] = here
    return [...notes.map((note) => commentLines(note, indent, '  ')),
      `${indent}${head}: ${literalOf(value, indent)}${end}`].join('\n')
  }).join('\n')
}

function placeOf (name: string) {
  const found = OPTIONS.findIndex((option) => option.name === name)
  return found === -1 ? OPTIONS.findLastIndex((option) => option.path[0] === name.split('.')[0]) + 0.5 : found
}

/** @returns why it is left out, and what to do instead */
export function foreignText ({ name, reason, nearest }: ForeignApp): string {
  return wrapLines(`Left out: ${name}. ${reason}. Nearest: ${nearest}`).join('\n')
}
