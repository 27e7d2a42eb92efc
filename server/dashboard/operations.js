/**
 * The operations of the API for people: what each takes and returns, and how to call it.
 * @typedef {import('../api/openapi.js').Json} Json
 * @typedef {{ name: string, type: string, shape: string | null, isRequired: boolean, about: string }} Field
 *   `shape`: the name of a type that is described separately
 * @typedef {{ name: string, about: string, fields: Field[] }} Shape
 * @typedef {Awaited<ReturnType<typeof describeOperation>>} Operation
 * @typedef {{ name: string, slug: string, about: string, operations: Operation[] }} Group
 */

const METHODS = ['get', 'post', 'put', 'patch', 'delete']
const JSON_TYPE = 'application/json'
/** @type {Readonly<Record<string, string>>} */
const TYPES = Object.freeze({
  string: 'text',
  boolean: 'true or false',
  integer: 'integer',
  number: 'number',
  object: 'object',
  null: 'null'
})

/**
 * @param {Json} document of OpenAPI
 * @param {(markdown: string) => Promise<string>} toHtml
 */
export async function operationsModel (document, toHtml) {
  const { tags, paths, components } = document
  const all = await Promise.all(Object.entries(paths).flatMap(([path, item]) => {
    const methods = METHODS.filter((method) => item[method])
    return methods.map((method) => describeOperation(item[method], { path, method, components, toHtml }))
  }))
  return {
    groups: /** @type {Group[]} */ (tags.map((/** @type {Json} */ { name, description }) => ({
      name,
      slug: name.toLowerCase().replaceAll(' ', '-'),
      about: description,
      operations: all.filter((operation) => operation.group === name)
    }))),
    shapes: Object.entries(components.schemas).map(([name, schema]) => ({ name, about: schema.description ?? '', fields: fieldsOf(schema) }))
  }
}

/**
 * @param {readonly Operation[]} operations @param {readonly Shape[]} shapes of the whole API
 * @returns {Shape[]} those that the operations name, and those that these name
 */
export function usedShapes (operations, shapes) {
  const names = new Set(operations.flatMap(({ parameters, body, answers }) => [...parameters, ...body ?? [], ...answers, ...answers.flatMap(({ fields }) => fields)]).map(({ shape }) => shape))
  // A set goes on to what is added to it meanwhile.
  for (const name of names) for (const { shape } of shapes.find((each) => each.name === name)?.fields ?? []) names.add(shape)
  return shapes.filter(({ name }) => names.has(name))
}

/** @param {Json} operation @param {{ path: string, method: string, components: Json, toHtml: (markdown: string) => Promise<string> }} parts */
async function describeOperation (operation, { path, method, components, toHtml }) {
  const { operationId, tags, summary, description, parameters, requestBody, responses, security } = operation
  const body = requestBody?.content[JSON_TYPE]?.schema
  const [fileType] = body || !requestBody ? [] : Object.keys(requestBody.content)
  const cli = operation['x-cli'] ?? []
  return {
    id: operationId,
    group: tags[0],
    method: method.toUpperCase(),
    path,
    summary,
    html: description ? await toHtml(description) : '',
    role: operation['x-role'],
    curl: toCurl({ path, method, parameters, body, fileType, isPublic: security?.length === 0 }),
    cli: typeof cli === 'string' ? [cli] : Object.values(cli),
    parameters: parameters.map((/** @type {Json} */ each) => ({
      name: each.name,
      isRequired: each.required,
      place: each.in,
      about: each.description ?? '',
      ...typeOf(each.schema)
    })),
    body: body ? fieldsOf(body) : null,
    answers: Object.entries(responses)
      .filter(([, { content }]) => content)
      .flatMap(([status, { content }]) => Object.entries(content).map(([mediaType, { schema }]) => {
        return { status, mediaType, ...typeOf(schema), fields: fieldsOf(schema) }
      })),
    problems: Object.entries(responses)
      .filter(([, { $ref }]) => $ref)
      .map(([status, { $ref }]) => ({ status, ...components.responses[lastPart($ref)] }))
      .map(({ status, content }) => ({ status, codes: Object.values(content)[0].schema.properties.code.enum }))
  }
}

/**
 * A command to paste into a shell. Examples need no more than single quotes.
 * @param {{ path: string, method: string, parameters: Json[], body?: Json, fileType?: string, isPublic: boolean }} request
 *   `fileType`: the media type of a body that is a file
 */
function toCurl ({ path, method, parameters, body, fileType, isPublic }) {
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => String(parameters.find((each) => each.name === name)?.schema.examples?.[0] ?? 1))
  const words = ['curl']
  if (!isPublic) words.push('-H "Authorization: Bearer $CLUSTERDECK_TOKEN"')
  if (!['get', ...(body || fileType ? ['post'] : [])].includes(method)) words.push(`-X ${method.toUpperCase()}`)
  if (body) words.push('-H \'Content-Type: application/json\'', `-d '${JSON.stringify(body.examples?.[0] ?? {})}'`)
  if (fileType) words.push(`-H 'Content-Type: ${fileType}'`, '--data-binary @file')
  return [...words, `"$CLUSTERDECK_URL${filled}"`].join(' ')
}

/** @param {Json} schema of an object @param {string} [prefix] @returns {Field[]} fields of nested objects have dots in their names */
function fieldsOf (schema, prefix = '') {
  return Object.entries(schema.properties ?? {}).flatMap(([key, field]) => {
    const name = `${prefix}${key}`
    const own = { name, isRequired: schema.required?.includes(key) ?? false, about: field.description ?? '', ...typeOf(field) }
    const inner = [field, ...(field.anyOf ?? [])].find((each) => each.properties)
    const item = [field, ...(field.anyOf ?? [])].find((each) => each.items?.properties)
    return [own, ...(inner ? fieldsOf(inner, `${name}.`) : item ? fieldsOf(item.items, `${name}[].`) : [])]
  })
}

/** @param {Json} schema @returns {{ type: string, shape: string | null }} */
function typeOf (schema) {
  const { $ref, anyOf, type, items, enum: values, const: value, format, minimum, maximum } = schema
  if ($ref) return { type: lastPart($ref), shape: lastPart($ref) }
  if (anyOf) {
    /** @type {ReturnType<typeof typeOf>[]} */
    const types = anyOf.map((/** @type {Json} */ each) => typeOf({ type, ...each }))
    return {
      type: [...new Set(types.map((each) => each.type))].join(' or '),
      shape: types.find((each) => each.shape)?.shape ?? null
    }
  }
  if (type === 'array') return { ...typeOf(items), type: `list of ${typeOf(items).type}` }
  if (values) {
    const listed = values.map((/** @type {unknown} */ each) => JSON.stringify(each)).join(', ')
    return { type: values.length > 12 ? 'one of many names' : listed, shape: null }
  }
  if (value !== undefined) return { type: JSON.stringify(value), shape: null }
  if (format === 'date-time') return { type: 'time', shape: null }
  const range = maximum !== undefined ? ` from ${minimum} to ${maximum}` : minimum ? ` from ${minimum}` : ''
  return { type: `${TYPES[type] ?? 'anything'}${range}`, shape: null }
}

/** @param {string} reference */
function lastPart (reference) {
  return reference.slice(reference.lastIndexOf('/') + 1)
}
