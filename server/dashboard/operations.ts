import type { Components, Described, Document, Parameter, Schema } from '../api/openapi.ts'

/** The operations of the API for people: what each takes and returns, and how to call it. */
/** `shape`: the name of a type that is described separately */
type Field = { name: string, type: string, shape: string | null, isRequired: boolean, about: string }
type Shape = { name: string, about: string, fields: Field[] }
type Operation = Awaited<ReturnType<typeof describeOperation>>

const METHODS = ['get', 'post', 'put', 'patch', 'delete']
const JSON_TYPE = 'application/json'
const TYPES: Readonly<Record<string, string>> = Object.freeze({ string: 'text', boolean: 'true or false',
  integer: 'integer', number: 'number', object: 'object', null: 'null' })

/** `document`: of OpenAPI */
export async function operationsModel (document: Document, toHtml: (markdown: string) => Promise<string>) {
  const { tags, paths, components } = document
  const all = await Promise.all(Object.entries(paths).flatMap(([path, item]) => {
    const methods = METHODS.filter((method) => item[method])
    return methods.map((method) => describeOperation(item[method], { path, method, components, toHtml }))
  }))
  return {
    groups: tags.map(({ name, description }) => ({ name, slug: name.toLowerCase().replaceAll(' ', '-'),
      about: description, operations: all.filter((operation) => operation.group === name) })
    ),
    shapes: Object.entries(components.schemas).map(([name, schema]) => ({ name, about: schema.description ?? '',
      fields: fieldsOf(schema) })
    )
  }
}

/** `shapes`: of the whole API. Returns those that the operations name, and those that these name. */
export function usedShapes (operations: readonly Operation[], shapes: readonly Shape[]): Shape[] {
  const names = new Set(
    operations.flatMap((
      { parameters, body, answers }
    ) => [...parameters, ...body ?? [], ...answers, ...answers.flatMap(({ fields }) => fields)]).map(({ shape }) =>
      shape
    )
  )
  // A set goes on to what is added to it meanwhile.
  for (const name of names)
    for (const { shape } of shapes.find((each) => each.name === name)?.fields ?? []) names.add(shape)
  return shapes.filter(({ name }) => names.has(name))
}

async function describeOperation (operation: Described,
  { path, method, components, toHtml }: { path: string, method: string, components: Components,
    toHtml: (markdown: string) => Promise<string> })
{
  const { operationId, tags, summary, description, parameters, requestBody, responses, security } = operation
  const body = requestBody?.content[JSON_TYPE]?.schema
  const [fileType] = body || !requestBody ? [] : Object.keys(requestBody.content)
  const cli = operation['x-cli'] ?? []
  return { id: operationId, group: tags[0], method: method.toUpperCase(), path, summary,
    html: description ? await toHtml(description) : '', role: operation['x-role'],
    curl: toCurl({ path, method, parameters, body, fileType, isPublic: security?.length === 0 }),
    cli: typeof cli === 'string' ? [cli] : Object.values(cli),
    parameters: parameters.map((each) => ({ name: each.name, isRequired: each.required, place: each.in,
      about: each.description ?? '', ...typeOf(each.schema) })
    ), body: body ? fieldsOf(body) : null,
    answers: Object.entries(responses).flatMap(([status, { content = {} }]) =>
      Object.entries(content).map(([mediaType, { schema }]) => {
        return { status, mediaType, ...typeOf(schema), fields: fieldsOf(schema) }
      })
    ),
    problems: Object.entries(responses).flatMap(([status, { $ref }]) =>
      $ref
        ? [{ status,
          codes: Object.values(components.responses[lastPart($ref)].content)[0].schema.properties?.code.enum }]
        : []
    ) }
}

/**
 * A command to paste into a shell. Examples need no more than single quotes.
 * @param request `fileType`: the media type of a body that is a file
 */
function toCurl (
  { path, method, parameters, body, fileType, isPublic }: { path: string, method: string, parameters: Parameter[],
    body?: Schema, fileType?: string, isPublic: boolean }
) {
  const filled = path.replace(/\{(\w+)\}/g,
    (_, name) => String(parameters.find((each) => each.name === name)?.schema.examples?.[0] ?? 1))
  const words = ['curl']
  if (!isPublic) words.push('-H "Authorization: Bearer $CLUSTERDECK_TOKEN"')
  if (!['get', ...(body || fileType ? ['post'] : [])].includes(method)) words.push(`-X ${method.toUpperCase()}`)
  if (body) words.push('-H \'Content-Type: application/json\'', `-d '${JSON.stringify(body.examples?.[0] ?? {})}'`)
  if (fileType) words.push(`-H 'Content-Type: ${fileType}'`, '--data-binary @file')
  return [...words, `"$CLUSTERDECK_URL${filled}"`].join(' ')
}

/**
 * @param schema of an object
 * @returns fields of nested objects have dots in their names
 */
function fieldsOf (schema: Schema, prefix: string = ''): Field[] {
  return Object.entries(schema.properties ?? {}).flatMap(([key, field]) => {
    const name = `${prefix}${key}`
    const own = { name, isRequired: schema.required?.includes(key) ?? false, about: field.description ?? '',
      ...typeOf(field) }
    const inner = [field, ...(field.anyOf ?? [])].find((each) => each.properties)
    const items = [field, ...(field.anyOf ?? [])].map((each) => each.items).find((each) => each?.properties)
    return [own, ...(inner ? fieldsOf(inner, `${name}.`) : items ? fieldsOf(items, `${name}[].`) : [])]
  })
}

function typeOf (schema: Schema): { type: string, shape: string | null } {
  const { $ref, anyOf, type, items, enum: values, const: value, format, minimum, maximum } = schema
  if ($ref) return { type: lastPart($ref), shape: lastPart($ref) }
  if (anyOf) {
    const types: ReturnType<typeof typeOf>[] = anyOf.map((each) => typeOf({ type, ...each }))
    return { type: [...new Set(types.map((each) => each.type))].join(' or '), shape: types.find((each) =>
      each.shape
    )?.shape ?? null }
  }
  if (type === 'array') return { ...typeOf(items ?? {}), type: `list of ${typeOf(items ?? {}).type}` }
  if (values) {
    const listed = values.map((each) => JSON.stringify(each)).join(', ')
    return { type: values.length > 12 ? 'one of many names' : listed, shape: null }
  }
  if (value !== undefined) return { type: JSON.stringify(value), shape: null }
  if (format === 'date-time') return { type: 'time', shape: null }
  const range = maximum !== undefined ? ` from ${minimum} to ${maximum}` : minimum ? ` from ${minimum}` : ''
  return { type: `${TYPES[type ?? ''] ?? 'anything'}${range}`, shape: null }
}

function lastPart (reference: string) {
  return reference.slice(reference.lastIndexOf('/') + 1)
}
