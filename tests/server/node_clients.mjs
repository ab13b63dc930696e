// One client of others for Node, named by the first argument, against the service at the second,
// with the key that is the third. Prints what it got as JSON: {"answer": …} or {"error": …}.
// Runs from the standard input in a folder whose node_modules has the packages.
const [name, url, key, text = "one two three"] = process.argv.slice(2);

async function libretranslate() {
  const { translate } = await import("libretranslate");
  return translate({ query: text, source: "en", target: "de", apiurl: url, apiKey: key });
}

async function libretranslateTs() {
  const module = await import("libretranslate-ts");
  const client = module.libreTranslate ?? module.default.libreTranslate ?? module.default;
  client.setApiEndpoint(url);
  client.setApiKey(key);
  const found = await client.translate(text, "en", "de");
  if (found.error) throw new Error(found.error);
  return found.translatedText;
}

async function translate() {
  const { default: translate } = await import("translate");
  translate.engine = "libre";
  translate.url = `${url}/translate`;
  translate.key = key;
  return translate(text, { from: "en", to: "de" });
}

async function deeplNode() {
  const deepl = await import("deepl-node");
  const client = new deepl.Translator(key, { serverUrl: url, maxRetries: 0 });
  const found = await client.translateText(text, "en", "de");
  return found.text;
}

async function openai() {
  const { default: OpenAI } = await import("openai");
  const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
  const messages = [{ role: "user", content: text }];
  const found = await client.chat.completions.create({ model: "en-de", messages });
  return found.choices[0].message.content;
}

async function aiSdk() {
  const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
  const { generateText } = await import("ai");
  const provider = createOpenAICompatible({ name: "own", baseURL: `${url}/v1`, apiKey: key });
  const found = await generateText({ model: provider("en-de"), prompt: text, maxRetries: 0 });
  return found.text;
}

async function langchain() {
  const { ChatOpenAI } = await import("@langchain/openai");
  const configuration = { baseURL: `${url}/v1` };
  const client = new ChatOpenAI({ model: "en-de", apiKey: key, configuration, maxRetries: 0 });
  const found = await client.invoke([
    ["system", "Translate from English to German."],
    ["human", text],
  ]);
  return found.content;
}

const CLIENTS = {
  libretranslate,
  "libretranslate-ts": libretranslateTs,
  translate,
  "deepl-node": deeplNode,
  openai,
  "@ai-sdk/openai-compatible": aiSdk,
  "@langchain/openai": langchain,
};

try {
  console.log(JSON.stringify({ answer: await CLIENTS[name]() ?? null }));
} catch (error) {
  const status = error.status ?? error.statusCode ?? null;
  console.log(JSON.stringify({ error: error.constructor.name, status, message: error.message }));
}
process.exit(0);
