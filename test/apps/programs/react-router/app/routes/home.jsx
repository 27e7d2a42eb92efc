export function loader () {
  return { pid: process.pid }
}

export default function Home ({ loaderData }) {
  return <p>{`hello from react-router, pid ${loaderData.pid}`}</p>
}
