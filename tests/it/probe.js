// What a browser makes of the page: written into the page itself, and told to the page around it.
const blocked = [];
addEventListener("securitypolicyviolation", (event) => blocked.push(event.effectiveDirective));
const failed = [];
addEventListener("error", (event) => failed.push(event.message || event.target.outerHTML.slice(0, 120)), true);
addEventListener("load", () => {
	const all = (selector) => [...document.querySelectorAll(selector)];
	const root = document.documentElement;
	const name = (element) => element.outerHTML.slice(0, 120);
	for (const details of all("details")) details.open = true;

	const colour = (text) => (text.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
	const light = (parts) => {
		const [r, g, b] = parts.map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const behind = (element) => {
		for (let it = element; it; it = it.parentElement) {
			const found = colour(getComputedStyle(it).backgroundColor);
			if (found.length < 4 || found[3] > 0) return found;
		}
		return [255, 255, 255];
	};
	const contrast = (element) => {
		const style = getComputedStyle(element);
		const ink = element.closest("svg") ? style.fill : style.color;
		const [a, b] = [light(colour(ink)), light(behind(element))].sort((a, b) => b - a);
		return (a + 0.05) / (b + 0.05);
	};
	const text = all("body *").filter((element) => !element.closest("script, style, title") && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));

	const focusable = all("a[href], summary, [tabindex='0']");
	const unfocused = focusable.filter((element) => {
		element.focus();
		const style = getComputedStyle(element);
		return document.activeElement !== element || style.outlineStyle === "none" || parseFloat(style.outlineWidth) < 2;
	});
	document.activeElement.blur();

	const ids = all("[id]").map((element) => element.id);
	const wanted = all("[aria-labelledby]").map((element) => element.getAttribute("aria-labelledby"));
	const links = all("a[href]").map((element) => element.getAttribute("href"));
	const levels = all("h1, h2, h3, h4, h5, h6").map((element) => Number(element.tagName[1]));
	const found = {
		inner: innerWidth,
		scroll: root.scrollWidth,
		dark: matchMedia("(prefers-color-scheme: dark)").matches,
		focusable: focusable.length,
		skip: focusable[0].className,
		landmarks: ["body > header", "main", "body > footer", "h1"].map((it) => all(it).length),
		// Every list has to be empty.
		faults: {
			blocked,
			failed,
			run: window.pwned ? ["a script of the page's data"] : [],
			scripts: all("script").filter((element) => element.id !== "probe").map(name),
			handlers: all("*").filter((element) => [...element.attributes].some((it) => it.name.startsWith("on"))).map(name),
			outside: links.filter((href) => !href.startsWith("#")).concat(all("[src], img, iframe, object, embed, form").map(name)),
			dead: links.filter((href) => href.startsWith("#") && !document.getElementById(href.slice(1))).concat(wanted.filter((id) => !ids.includes(id))),
			twice: ids.filter((id, index) => ids.indexOf(id) !== index),
			unscoped: all("th").filter((element) => !element.scope).map(name),
			unnamed: all("[role=region], [role=img], section, article").filter((element) => !element.getAttribute("aria-label") && !element.getAttribute("aria-labelledby")).map(name),
			levels: levels.filter((level, index) => index > 0 && level > levels[index - 1] + 1),
			unfocused: unfocused.map(name),
			pale: text.filter((element) => contrast(element) < 4.5).map((element) => contrast(element).toFixed(2) + " " + name(element)),
			small: text.filter((element) => parseFloat(getComputedStyle(element).fontSize) < 11.9).map(name),
			thin: all("th, td").filter((element) => element.textContent.trim().length > 4 && element.offsetWidth < 3 * parseFloat(getComputedStyle(element).fontSize)).map(name),
			wide: all("body *").filter((element) => element.getBoundingClientRect().right > innerWidth + 0.5 && !element.parentElement.closest(".scroll, pre, .skip")).map(name),
		},
	};
	const pre = document.createElement("pre");
	pre.id = "found";
	pre.textContent = JSON.stringify(found);
	document.body.append(pre);
	if (parent !== window) parent.postMessage(pre.textContent, "*");
});
